/** What the workers have in common in which a module of the program's is run. */

import { type Attachment, attachmentOf } from './attachment.ts';
import { Coordinator } from './coordinator.ts';

/** The coordinator of the thread that has started this worker. */
export function ownCoordinator(): { coord: Coordinator; attachment: Attachment } {
  const coord = Coordinator.current();
  if (coord === undefined) throw new Error('This module is for workers of the package');
  return { coord, attachment: attachmentOf(coord) };
}

type Exports = { default?: ((...args: unknown[]) => unknown) | { default?: unknown } | null };

/** The default export of the module. `of`: what it is, for people: "a looper". */
export async function defaultOf(
  module: string,
  of: string,
): Promise<(...args: unknown[]) => unknown> {
  const imported = (await import(/* webpackIgnore: true */ /* @vite-ignore */ module)) as Exports;
  // Of a module compiled to CommonJS, Node takes all exports for the default one.
  const { default: all } = imported;
  const target = typeof all === 'object' ? all?.default : all;
  if (typeof target === 'function') return target as (...args: unknown[]) => unknown;
  throw new TypeError(`The module ${module} of ${of} has no function as its default export`);
}
