/**
 * Servers that a stop closes in order: requests in flight end.
 *
 * @module allstop/http
 */

export * from '../errors/public-errors.ts';
export { type CloseOnStopOptions, closeOnStop, type ServerClosing } from './close-on-stop.ts';
