/**
 * The messages between a coordinator and a worker on the same machine: records, whose `kind` says
 * which. A call in `run` and a result in `results` are tuples: thousands go in a second, and a
 * record is copied with the names of its properties each time (for a trivial call that was a tenth
 * of its processor time more).
 */

import { isObject } from '../../base/thrown-value.ts';
import type { StopMessage } from '../../coordinator/stop-relay.ts';
import type { PassedArguments } from '../../values/packed-arguments.ts';
import type { WorkerResource } from './protocol.ts';
import type { Answer, Definition, Request } from './variables.ts';

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

const hasKind = (message: unknown): message is { kind: unknown } =>
  isObject(message) && 'kind' in message;

/** Whether a message of the parent is a message of its pool. */
export const isToWorker = (message: unknown): message is ToWorker => hasKind(message);

/** Whether a message of a worker is the worker's own, and none of a function. */
export const isFromWorker = (message: unknown): message is FromWorker =>
  hasKind(message) && typeof message.kind === 'string' && message.kind.startsWith(OWN);
