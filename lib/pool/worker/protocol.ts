/**
 * The messages between a coordinator and a worker on the same machine: arrays whose first
 * element is the kind of message. Several closures, or several results, share one message.
 */

import { isDataCloneError, refusedValue } from '../../base/refused-values.ts';
import type { Definition } from '../../cluster/variables/variable.ts';
import type { PassedArguments } from '../../values/passed-arguments.ts';
import type { ModuleHooks } from './module-options.ts';

/** The settings that a worker is started with. */
export type WorkerSettings = ModuleHooks & {
  kind: 'cluster';
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
  /**
   * Threads only, that share memory with the values: the id of the variables
   * (NativeBinding.attachVariables). Others send messages.
   */
  variables?: number;
  /** Threads only, of a node: the variables, whose operations are messages. */
  definitions?: Definition[];
  /** Threads only: what the module finds as `workerData` of node:worker_threads. */
  workerData?: unknown;
};

/**
 * The number of claims that a coordinator shares with a worker thread, or the worker's concurrency
 * if that is more. The claim of a closure that was sent holds the closure's id. By one
 * compare-and-exchange either the worker starts the closure (-id) or the coordinator recalls it
 * (0): so both know which closures were started. The coordinator writes CANCELLED over -id to
 * cancel the closure. When the function has ended, the worker writes ENDED.
 */
export const CLAIMS = 256;
/** The claim of a closure that has ended. No id is so large. */
export const ENDED: number = -(2 ** 31);
/** The claim of a closure that was started and is cancelled. No id is so large. */
export const CANCELLED: number = ENDED + 1;

/**
 * What has become of a closure that comes back from a worker without a result: it was only sent
 * there; it was running there when the worker died; nobody can tell whether it was running there
 * ('unsure'): a suspect that is not charged; or it had ended there, and its result was
 * lost with the worker, or it ran beside the function for which the worker was ended by force: so
 * it is no suspect.
 */
export type Fate = 'sent' | 'running' | 'unsure' | 'ended';

export const TO_WORKER = {
  /** [run, ...[id, index of claim, attempt, name, args: PassedArguments, perWorker, flags: RUN, context]]; the last for lib/telemetry */
  run: 0,
  /** [prepare, id, resource] */
  prepare: 1,
  /** [cancel, id, reason as an encoded error] */
  cancel: 2,
  /** [stop, StopMessage]: processes only */
  stop: 3,
  /**
   * [end, whether its iterators are let go and its teardown function is called before]: no closure
   * follows. A process exits
   */
  end: 4,
  /** [define, ...Definition[]]: variables whose values are not in this process */
  define: 5,
  /** [answer, id of the operation, ...Answer] */
  answer: 6,
  /** [drawn, id of the request, state, packed result or encoded error]: threads of a node only */
  drawn: 7,
  /** [ping]: threads only; answered by `pong` as soon as the thread reads it */
  ping: 8,
  /** [forget, id]: nobody has the data set or iterator any more */
  forget: 10,
  /** [written, descriptor]: threads only; the answer to an `output` that asks */
  written: 9,
  /** [leave]: it will be asked to end: `currentCall().leaving` aborts */
  leave: 11,
} as const;

/**
 * Large numbers: an array that a function posts to `parentPort` itself, say `[0, 1]`, must not be
 * taken for a message of the worker.
 */
export const FROM_WORKER = {
  /** [results, ...[id, state, value, microseconds]]; the value is bytes if the arguments were a Uint8Array */
  results: 0x2a11_5700,
  /** [ready, names of the module's functions] */
  ready: 0x2a11_5701,
  /** [failed, encoded error, whether it says all]: the module cannot be imported, or may not be */
  failed: 0x2a11_5702,
  /** [prepared, id] */
  prepared: 0x2a11_5703,
  /** [stop, StopMessage]: processes only */
  stop: 0x2a11_5704,
  /** [dying, encoded error]: processes only; an uncaught error is about to end the process */
  dying: 0x2a11_5705,
  /** [announcing, id, microseconds]: the next message is the result of this closure alone */
  announcing: 0x2a11_5706,
  /** [settingUp]: the module is imported, and its setup function runs */
  settingUp: 0x2a11_5707,
  /** [setupFailed, encoded error]: also if the module has no such function, or no such teardown */
  setupFailed: 0x2a11_5708,
  /** [ending, encoded error of the teardown function or null]: the answer to `end` */
  ending: 0x2a11_5709,
  /** [heapFull]: once */
  heapFull: 0x2a11_570a,
  /** [operate, id of the operation, ...Request] */
  operate: 0x2a11_570b,
  /** [progress, id, ...packed values] */
  progress: 0x2a11_570c,
  /** [draw, id of the request, packed arguments of a DRAW]: threads of a node only */
  draw: 0x2a11_570d,
  /** [pong] */
  pong: 0x2a11_570e,
  /** [begun, id]: the function begins, of a closure that was sent with RUN.tellsStart */
  begun: 0x2a11_570f,
  /** [output, descriptor, text or bytes, whether the worker waits for `written`]: threads only */
  output: 0x2a11_5710,
  /** [leaving]: processes only; somebody has sent SIGTERM */
  leaving: 0x2a11_5711,
} as const;

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

/** The number of elements that a closure has in `run`, and a result in `results`. */
export const RUN_LENGTH = 8;
export const RESULT_LENGTH = 4;

/** What `run` says of a closure, as bits. */
export const RUN = { hasVariables: 1, tellsStart: 2, isKeyed: 4 } as const;

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

/** The advice in errors about a function that is not found. */
export const PASS_A_NAME = 'pass the name of an export of the strategy’s module';
