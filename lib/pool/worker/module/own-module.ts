/**
 * Keeps the module of a worker from making the worker's own cluster once more: each worker of that
 * cluster would import the module again and make another, without end.
 */

import { realpathSync } from 'node:fs';
import { FailedPreconditionError } from '../../../errors/errors.ts';
import { callOfCaller } from '../call-store.ts';
import { shownModule } from './import-error.ts';

/** What this thread is a worker for; undefined in a thread that is no worker of a cluster. */
let served: { readonly module: URL; readonly tell: (error: Error) => void } | undefined;

/**
 * Called before the worker imports its module. `tell` gets the error of `refuseOwnModule` also if
 * the module catches it, or makes the cluster only after its import has ended.
 */
export function serveModule(href: string, tell: (error: Error) => void): void {
  served = { module: new URL(href), tell };
}

/**
 * A function that the cluster calls may make a cluster of its own module: it ends one day.
 *
 * @throws FailedPreconditionError: this thread is a worker with that module, and no function of the
 *   module makes the cluster, but the module itself, or a file that it imports
 */
export function refuseOwnModule(module: URL): void {
  if (served === undefined || callOfCaller() !== undefined) return;
  if (placeOf(module) !== placeOf(served.module)) return;
  const error = new FailedPreconditionError(
    `The module ${shownModule(module)} makes a cluster while a worker imports it. Put the functions into a file of their own, or make the cluster only outside workers: if (!Coordinator.current()), with import { Coordinator } from "allstop"`,
  );
  served.tell(error);
  throw error;
}

/** The path of the file, whatever links lead there; of another URL its text. */
export function placeOf(module: URL): string {
  if (module.protocol !== 'file:') return module.href;
  try {
    return realpathSync(module);
  } catch {
    return module.pathname;
  }
}
