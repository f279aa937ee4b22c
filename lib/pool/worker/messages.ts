/**
 * The messages between a coordinator and a worker on the same machine: records, whose `kind` says
 * which. A call in `run` and a result in `results` are tuples: thousands go in a second, and a
 * record is copied with the names of its properties each time (for a trivial call that was a tenth
 * of its processor time more).
 */

import { isObject } from '../../base/thrown-value.ts';
import type { StopMessage } from '../../coordinator/stop-relay.ts';
import { isDataCloneError, refusedValue, refuses } from '../../values/lost-values.ts';
import { type PassedArguments } from '../../values/value.ts';
import type { ModuleHooks } from './module.ts';
import type { Answer, Definition, Request, VariableSettings } from './variables.ts';

export type SentCall = readonly [
  id: number,
  /** The index of its claim. */
  claim: number,
  /** From 1. */
  attempt: number,
  name: string,
  args: PassedArguments,
  perWorker: readonly number[] | undefined,
  hasVariables: boolean,
  /** The worker sends `begun` when the function begins. */
  tellsStart: boolean,
  isKeyed: boolean,
  /** For lib/telemetry. */
  context: string | undefined,
];

/** The value is bytes if the arguments were a Uint8Array; an encoded error if the function failed. */
export type SentResult = readonly [id: number, state: number, value: unknown, us: number];

export type ToWorker =
  | { kind: 'run'; calls: readonly SentCall[] }
  | { kind: 'prepare'; resource: WorkerResource }
  | { kind: 'cancel'; id: number; reason: Uint8Array }
  /** Processes only: the stop record. */
  | { kind: 'stop'; stop: StopMessage }
  /**
   * No call follows. `letsGo`: before, the iterators are let go, and the teardown function is called.
   * A process exits.
   */
  | { kind: 'end'; letsGo: boolean }
  /** Variables whose values are not in this process. */
  | { kind: 'define'; definitions: readonly Definition[] }
  | { kind: 'answer'; id: number; answer: Answer }
  /** Threads of a node only: the packed result or encoded error of a `draw`. */
  | { kind: 'drawn'; id: number; state: number; bytes: Uint8Array }
  /** Threads only; answered by `pong` as soon as the thread reads it. */
  | { kind: 'ping' }
  /** Nobody has the data set or iterator any more. */
  | { kind: 'forget'; id: number }
  /** Threads only: the answer to an `output` that asks. */
  | { kind: 'written'; descriptor: number }
  /** It will be asked to end: `currentCall().leaving` aborts. */
  | { kind: 'leave' };

/** What a function posts to `parentPort` itself must not be taken for a message of the worker. */
const OWN = 'allstop:';

export type FromWorker =
  | { kind: 'allstop:results'; results: readonly SentResult[] }
  /** `functions`: the names of those that the module exports. */
  | { kind: 'allstop:ready'; functions: readonly string[] }
  /** The module cannot be imported, or may not be. `isWhole`: the error says all. */
  | { kind: 'allstop:failed'; error: Uint8Array; isWhole: boolean }
  | { kind: 'allstop:prepared'; id: number }
  /** Processes only. */
  | { kind: 'allstop:stop'; stop: StopMessage }
  /** Processes only, the first: the process runs our code. */
  | { kind: 'allstop:begins' }
  /** Processes only: an uncaught error is about to end the process. */
  | { kind: 'allstop:dying'; error: Uint8Array }
  /** The next message is the result of this call alone. */
  | { kind: 'allstop:announcing'; id: number; us: number }
  /** The module is imported, and its setup function runs. */
  | { kind: 'allstop:settingUp' }
  /** Also if the module has no such function, or no such teardown. */
  | { kind: 'allstop:setupFailed'; error: Uint8Array }
  /** The answer to `end`. `error`: of the teardown function. */
  | { kind: 'allstop:ending'; error: Uint8Array | undefined }
  /** The heap is larger than it may be: sent once. */
  | { kind: 'allstop:heapFull' }
  | { kind: 'allstop:operate'; id: number; request: Request }
  /** What a function has reported, each value packed. */
  | { kind: 'allstop:progress'; id: number; values: readonly Uint8Array[] }
  /** Threads of a node only: `request` is the packed arguments of a DRAW. */
  | { kind: 'allstop:draw'; id: number; request: Uint8Array }
  | { kind: 'allstop:pong' }
  /** The function of a call begins that `tellsStart`. */
  | { kind: 'allstop:begun'; id: number }
  /** Threads only. `asks`: the worker waits for `written`. */
  | { kind: 'allstop:output'; descriptor: number; chunk: string | Uint8Array; asks: boolean }
  /** Processes only: somebody has sent SIGTERM. */
  | { kind: 'allstop:leaving' };

/** Whether a message of the parent is a message of its pool. */
export const isToWorker = (message: unknown): message is ToWorker =>
  isObject(message) && 'kind' in message;

/** Whether a message of a worker is the worker's own, and none of a function. */
export const isFromWorker = (message: unknown): message is FromWorker =>
  isToWorker(message) && typeof message.kind === 'string' && message.kind.startsWith(OWN);

// What a coordinator and its workers on the same machine have agreed on besides: how a worker is
// started, the claims, what a worker makes for its functions; and the default of `retries`.

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
  const index = [...args].findIndex((value) => refuses(clone, value));
  if (index === -1) return error;
  const argument = { path: `args[${index}]`, value: args[index] };
  return refusedValue(error, `Argument ${index} of '${name}'`, argument, clone);
}

/** How often a function or a data set is run again by default. */
export const RETRIES = 3;
