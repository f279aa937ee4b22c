/** What looper and queue runner workers share: each runs a module of the program. */

import { turn } from '../../base/timer.ts';
import { FailedPreconditionError } from '../../errors/errors.ts';
import { hold } from '../../native/native.ts';
import { type Attachment, attachmentOf } from '../attachment.ts';
import { Coordinator } from '../coordinator.ts';

/** The error of a program that loads `allstop-worker.js` by itself. */
export const onlyForOwnWorkers = (): Error =>
  new FailedPreconditionError(
    "'allstop/worker' runs only in workers that the package starts: do not import it. A bundler takes it as an entry point, by the name 'allstop-worker'",
  );

type Exports = { default?: ((...args: unknown[]) => unknown) | { default?: unknown } | null };

/**
 * The default export of the module. `title` says whose module it is, for people: "the
 * LooperThread 'pulse'".
 *
 * @throws (rejects) TypeError (`ERR_INVALID_ARG_TYPE`): the default export is not a function
 */
async function defaultOf(module: string, title: string): Promise<(...args: unknown[]) => unknown> {
  const imported: Exports = await import(/* webpackIgnore: true */ /* @vite-ignore */ module);
  // For a module compiled to CommonJS, `default` is the object of all its exports.
  const { default: all } = imported;
  const target = typeof all === 'object' ? all?.default : all;
  if (typeof target === 'function') return target as (...args: unknown[]) => unknown;
  const error = new TypeError(
    `The module of ${title} has no function as its default export: ${module}. ` +
      'Export the function to run as default',
  );
  throw Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' });
}

/** Resolves when all that was written to the stream has been sent to the parent. */
function sent(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => resolve();
    if (stream.writableLength === 0) done();
    else if (stream.writable) stream.write('', done);
    else stream.end(done); // the module has ended it
  });
}

/**
 * Calls `run` with the module's default export and this worker's own coordinator. Then the worker ends,
 * as a thread does with its function, whatever its module has left open. What it has written is whole,
 * and a rejection that nobody handles ends it with that error.
 */
export async function runModule(
  module: string,
  title: string,
  run: (
    target: (...args: unknown[]) => unknown,
    attachment: Attachment,
    coord: Coordinator,
  ) => Promise<void>,
): Promise<void> {
  // First: as of here an uncaught error of this Worker reaches the coordinator with all its fields.
  const coord = Coordinator.current();
  if (coord === undefined) throw onlyForOwnWorkers();
  const target = await defaultOf(module, title);
  hold(); // a run may await something that does not keep the event loop alive
  await run(target, attachmentOf(coord), coord);
  await turn();
  await Promise.all([sent(process.stdout), sent(process.stderr)]);
  process.exit();
}
