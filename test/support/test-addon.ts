/** The types of test/addons/test-addon, the addon of a third party. */
import { createRequire } from 'node:module';
import type { BoundedQueue, Coordinator } from 'allstop';
import type { Variable } from 'allstop/cluster';

type Bytes = BoundedQueue<Uint8Array>;

export type Job =
  | 'gate' // waits at the gate of its own name, then ends
  | 'throw' // waits at its gate, then throws a C++ exception with `text`
  | 'throw-int'
  | 'wait' // result: 'stopped'
  | 'poll' // result: 'stopped'
  | 'describe' // waits for the stop; result: the record, fields separated by |
  | 'request' // waits at its gate, then requests a stop; result: the status
  | 'request-error' // the same with the error `name|message|code`
  | 'join'; // result: the status

export type TestAddon = {
  start(coord: Coordinator, job: Job, name: string, text?: string): void;
  startUnregistered(coord: Coordinator, job: Job, name: string, text?: string): void;
  registerUnstarted(coord: Coordinator, name: string): void;
  /** One call on a native thread of its own; numbers are statuses of allstop.h. */
  call(coord: Coordinator, operation: string, text?: string): string;
  /** A stop callback that takes 300 ms. */
  blockingCallback(coord: Coordinator): void;
  openGate(name: string): void;
  /** Blocks until the thread of this name has a result, and returns it. */
  result(name: string): string | undefined;
  requestStop(coord: Coordinator): void;
  /** Threads that call `fn` with their number until its environment has ended: "refused". */
  post(fn: (thread: number) => void, name: string, threads: number): void;
  hammer(coord: Coordinator, name: string, threads: number, rounds: number): void;
  status(value: unknown): number;
  queueStatus(value: unknown): number;
  /** Throws the error that the function of allstop_node.h makes of the status. */
  throwStatus(
    fn:
      | 'allstop_throw'
      | 'allstop_throw_status'
      | 'allstop_queue_throw_status'
      | 'allstop_variable_throw_status',
    status: number,
    message?: string,
  ): void;
  /** A native thread that enqueues `count` numbers; result: "how many|status". */
  queueProduce(queue: Bytes, producer: number, count: number, name: string): void;
  /** A native thread that counts what it dequeues; result: "status|out of order". */
  queueConsume(queue: Bytes, seen: Int32Array, perProducer: number, name: string): void;
  /** A native thread in one call without a timeout; result: "status|bytes". */
  queueBlock(queue: Bytes, operation: 'enqueue' | 'dequeue', name: string): void;
  /** A native thread that enqueues items without a copy, of bytes i, and closes. */
  queueFill(queue: Bytes, count: number, size: number): void;
  variableStatus(value: unknown): number;
  /** "name|type|length" */
  variableInfo(variable: unknown): string;
  /** A native thread that waits at its gate, then adds 1 to each element; result: the status. */
  variableAdd(variable: Variable<any>, count: number, name: string): void;
  /** The number of a StopFlag, or undefined if it is not valid. */
  flag(value?: unknown): number | undefined;
  /** Hangs a listener of an older allstop on the signal; returns what stops its source. */
  oldListener(signal: object): () => void;
  /** The status of allstop_stop_flag_from_napi, and whether the flag is stopped: "0|1". */
  flagStatus(value?: unknown): string;
  mergeFlags(one: number, other: number): number;
  flagShouldStop(flag: number): boolean;
  /** Releases the flag, on a native thread. */
  releaseFlag(flag: number): void;
  /** A native thread that polls the flag; result: the time in ms at which it saw the stop. */
  watchFlag(flag: number, name: string): void;
  decoy(): object;
  external(): unknown;
};

const path = new URL('../addons/test-addon/build/Release/test_addon.node', import.meta.url)
  .pathname;

export const addon: TestAddon = createRequire(import.meta.url)(path);
