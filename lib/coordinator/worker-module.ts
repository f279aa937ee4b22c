/** What the workers have in common in which a module of the program's is run. */

import { Attachment } from './attachment.ts';
import { Coordinator } from './coordinator.ts';

/** The coordinator of the thread that has started this worker. */
export function ownCoordinator(): { coord: Coordinator; attachment: Attachment } {
  const coord = Coordinator.current();
  const attachment = coord && Attachment.behind(coord);
  if (attachment === undefined) throw new Error('This module is for workers of the package');
  return { coord: coord as Coordinator, attachment };
}

type Exports = { default?: ((...args: unknown[]) => unknown) | { default?: unknown } | null };

/**
 * The default export of the module. `title` says whose module it is, for people: "the
 * LooperThread 'pulse'".
 *
 * @throws (rejects) TypeError (`ERR_INVALID_ARG_TYPE`): the default export is not a function
 */
export async function defaultOf(
  module: string,
  title: string,
): Promise<(...args: unknown[]) => unknown> {
  const imported = (await import(/* webpackIgnore: true */ /* @vite-ignore */ module)) as Exports;
  // Of a module compiled to CommonJS, Node takes all exports for the default one.
  const { default: all } = imported;
  const target = typeof all === 'object' ? all?.default : all;
  if (typeof target === 'function') return target as (...args: unknown[]) => unknown;
  const error = new TypeError(
    `The module of ${title} has no function as its default export: ${module}. ` +
      'Export the function to run as default',
  );
  throw Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' });
}
