/**
 * node costs-process.mjs FEATURE COUNT: COUNT trivial calls, one after the other, on one worker, that
 * use the feature. Prints the bytes of the heap of one call of the second half as JSON.
 */

import { tracingChannel } from 'node:diagnostics_channel';
import { mkdtempSync, rmSync } from 'node:fs';
import nodeModule from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [, , feature, count] = process.argv;
if (process.env.ALLSTOP_WITHOUT !== undefined) {
  nodeModule.register('./costs-hooks.mjs', import.meta.url);
}
const { ClusterCoordinator, FileResults, LocalStrategy } = await import('../dist/cluster/index.js');

const nothing = () => {};
const controller = new AbortController();
const span = { addEvent: nothing, setAttribute: nothing, setStatus: nothing, end: nothing };
const ids = { traceId: '1'.repeat(32), spanId: '1'.repeat(16), traceFlags: 1 };
span.spanContext = () => ids;

/** What the program does before its calls. */
const prepare = {
  channels: () => tracingChannel('allstop:cluster:task').subscribe({ asyncEnd: nothing }),
  async spans() {
    const { trace } = await import('@opentelemetry/api');
    trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan: () => span }) });
  },
};
/** The options of the call with this number. */
const options = {
  timeoutMs: () => ({ timeoutMs: 60_000 }),
  runTimeoutMs: () => ({ runTimeoutMs: 60_000 }),
  signal: () => ({ signal: controller.signal }),
  retryOn: () => ({ retryOn: () => false }),
  onProgress: () => ({ onProgress: nothing }),
  key: (call) => ({ key: `call-${call}` }),
};

await prepare[feature]?.();
const directory = mkdtempSync(join(tmpdir(), 'allstop-costs-'));
const results = feature === 'key' ? { results: new FileResults(directory) } : {};
const module = new URL('cluster-tasks.mjs', import.meta.url);
const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }), results);
await cluster.ready({ timeoutMs: 600_000 }); // under callgrind, on a busy machine
const half = Number(count) >> 1;
let before = 0;
for (let call = 0; call < Number(count); call++) {
  if (call === half) {
    globalThis.gc?.();
    before = process.memoryUsage().heapUsed;
  }
  await cluster.run('add', [call, 1], options[feature]?.(call));
}
const bytes = (process.memoryUsage().heapUsed - before) / half;
await cluster.close();
rmSync(directory, { recursive: true, force: true });
process.stdout.write(JSON.stringify(bytes), () => process.exit());
