/**
 * What a coordinator and its workers on the same machine have agreed on besides their messages
 * (messages.ts): how a worker is started, the claims, what a worker makes for its functions.
 */

import { isDataCloneError, refusedValue } from '../../values/lost-values.ts';
import type { PassedArguments } from '../../values/packed-arguments.ts';
import type { ModuleHooks } from './module.ts';
import type { VariableSettings } from './variables.ts';

/** The settings that a worker is started with. */
export type WorkerSettings = ModuleHooks &
  VariableSettings & {
    kind: 'cluster';
    /** The name of the pool's coordinator. */
    poolName: string;
    module: string;
    job: string;
    index: number;
    /** How many asynchronous functions run at once. */
    concurrency: number;
    /** The worker reports when its heap is larger, after a function. */
    heapMb: number | undefined;
    /** Processes only: the end of the line from the parent (openLine in lib/coordinator/threads). */
    down?: number | string;
    /** Threads only: the claims, in shared memory. */
    words?: Int32Array;
    /** Threads only: what the module finds as `workerData` of node:worker_threads. */
    workerData?: unknown;
  };

/**
 * The number of claims that a coordinator shares with a worker thread, or the worker's concurrency
 * if that is more. The claim of a call that was sent holds the call's id. By one
 * compare-and-exchange either the worker starts the call (-id) or the coordinator recalls it
 * (0): so both know which calls were started. The coordinator writes CANCELLED over -id to
 * cancel the call. When the function has ended, the worker writes ENDED.
 */
export const CLAIMS = 256;
/** The claim of a call that has ended. No id is so large. */
export const ENDED: number = -(2 ** 31);
/** The claim of a call that was started and is cancelled. No id is so large. */
export const CANCELLED: number = ENDED + 1;

/**
 * What has become of a call that comes back from a worker without a result: it was only sent
 * there; the worker may have died as it read it; it was running there when the worker died, or may
 * have been; or it had ended there, and its result was lost with the worker, or it ran beside the
 * function for which the worker was ended by force: so it is no suspect.
 */
export type Fate = 'sent' | 'unread' | 'running' | 'ended';

/** Whether the function of such a call was started. */
export const wasStarted = (fate: Fate): boolean => fate === 'running' || fate === 'ended';

/**
 * How a worker makes its own data set or iterator. Plain data, kept for workers that start later.
 */
export type Resource =
  | {
      readonly kind: 'dataset';
      readonly id: number;
      readonly name: string;
      readonly args: PassedArguments;
      readonly hasVariables: boolean;
    }
  | { readonly kind: 'iterator'; readonly id: number; readonly dataset: number }
  /** A resource that cannot be made: functions that use it fail with this encoded error. */
  | { readonly kind: 'broken'; readonly id: number; readonly record: Uint8Array };

/** What a worker is sent to make: on a node with several slots also what another thread has made. */
export type WorkerResource = Resource | { readonly kind: 'shared'; readonly id: number };

/**
 * The name of the function, of no module, by which a node's threads use its iterators: its
 * arguments are the iterator's id, the method ('open' only waits until it is made) and a value.
 */
export const DRAW = 'allstop:draw';
export type DrawMethod = 'open' | 'next' | 'return';

/** The state of a result. */
export const STATE = { ready: 0, failed: 1 } as const;

/** As `refusedValue`, for the first argument that `clone` refuses. */
export function argumentError(
  error: unknown,
  name: string,
  args: readonly unknown[],
  clone: (value: unknown) => unknown,
): unknown {
  if (!isDataCloneError(error)) return error; // a search would call the getter again
  const isRefused = (value: unknown): boolean => {
    try {
      clone(value);
      return false;
    } catch {
      return true;
    }
  };
  const index = [...args].findIndex(isRefused);
  if (index === -1) return error;
  const argument = { path: `args[${index}]`, value: args[index] };
  return refusedValue(error, `Argument ${index} of '${name}'`, argument, clone);
}

/** How often a function or a data set is run again by default. */
export const RETRIES = 3;
