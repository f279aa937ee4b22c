/**
 * Helpers for the tests of programs: stops, threads, workers and links that fail on demand.
 *
 * @module allstop/testing
 */

export * from '../errors/public-errors.ts';
export { fakeStraggler } from './fake-straggler.ts';
export { Gate, type GateHandle, type GateOptions, type GateWaitOptions } from './gate.ts';
export { type KilledWorker, type KillWorkerOptions, killWorker } from './kill-worker.ts';
export { LinkProxy, type LinkProxyOptions } from './link-proxy.ts';
export { tripAfter } from './trip-after.ts';
