/** What the native addon exports, as TypeScript sees it: native/binding implements it. */

/** How a stop came about. The names are those of native/binding/convert.cc. */
export type Via =
  | 'call'
  | 'exception'
  | 'signal'
  | 'abort'
  | 'close'
  | 'timeout'
  | 'parent'
  | 'worker-exit';

/** The kinds of threads; the order is that of core::ThreadKind. */
export const THREAD_KINDS = ['worker', 'process', 'task', 'looper', 'native', 'custom'] as const;
export type ThreadKind = (typeof THREAD_KINDS)[number];

/** The kinds of stops; the order is that of core::StopKind. */
export const STOP_KINDS = ['plain', 'clean', 'error'] as const;

/** What became of a request; the order is that of core::StopOutcome. */
export const STOP_OUTCOMES = [
  'stopped',
  'already-stopped',
  'suppressed',
  'counted',
  'echo',
  'refused',
] as const;
export type StopOutcome = (typeof STOP_OUTCOMES)[number];

export type NativeRequester = {
  native: boolean;
  via: Via;
  threadName: string;
  threadId: number;
  pid: number;
  stack: string;
  signal: string;
  at: number;
};

/** A requester; what is left out is this JavaScript thread's. */
export type RequesterOptions = {
  via: Via;
  /** Of another process's native thread. */
  native?: boolean;
  threadName?: string;
  threadId?: number;
  pid?: number;
  signal?: string;
  /** Of another process's stop: milliseconds since 1970, by its clock. */
  at?: number;
  /** A function is called when everybody has been woken. */
  stack?: string | (() => string);
};

/** Times are milliseconds since 1970; `error` is an encoded error (error-record.ts). */
export type NativeRecord = {
  id: string;
  /** Which stop of its coordinator it is, from 1. */
  generation: number;
  kind: number;
  error: Uint8Array | null;
  requester: NativeRequester;
  /** Milliseconds since the stop, by the monotonic clock. */
  ageMs: number;
};

export type NativeSuppressed = { error: Uint8Array; requester: NativeRequester };

export type NativeThread = {
  name: string;
  kind: number;
  alive: boolean;
  unobserved: boolean;
  /** A native thread that has begun: `threadId` is the OS thread id. */
  isOsThread: boolean;
  threadId?: number;
  startedAt: number;
  /** 0 until it has ended. */
  endedAt: number;
};

export type NativeJoinResult = {
  /** The first stop that the join saw. */
  stop: NativeRecord | null;
  /** What the join comes to: the recorded error, or a reported one. */
  error: Uint8Array | null;
  stragglers: NativeThread[];
};

/** One coordinator in this JavaScript thread. After any call that can change
 * state, take the dirty tokens: the doorbell does not ring for one's own doing. */
export interface NativeAttachment {
  /** The mirrors of several coordinators of this thread. */
  readonly words: Int32Array;
  /** Index into `words` of this one's: not 0 while stopped; then its generation | 0. */
  readonly wordIndex: number;
  /** What `takeDirty` calls it. */
  readonly token: number;
  /** Of the coordinator, never used twice in a process. */
  readonly id: string;
  readonly name: string;
  readonly stopGracePeriodMs: number;

  requestStop(
    error: Uint8Array | null,
    requester: RequesterOptions,
    echoIds: string[],
    abortEchoIds: string[],
    hasCaller: boolean,
    recordId?: string,
  ): number;
  /** From now on a stop's record is provisional, and joins of it wait for one of these two. */
  awaitAnswer(): void;
  /** Whose stop has won. */
  answerStop(error: Uint8Array | null, requester: RequesterOptions, recordId: string): void;
  /** What stands has. */
  answerNone(): void;
  /** False: the parent is stopped. */
  clearStop(): boolean;
  /** Blocks for `ms` at most; true once stopped or the generation is another. */
  waitSlice(generation: number, ms: number): boolean;
  generation(): number;
  /** Returns the generation as of which stops will be told. */
  setInterested(interested: boolean): number;
  /** The first stop since the last call, or null. */
  takeUnseen(): NativeRecord | null;
  record(): NativeRecord | null;
  suppressed(): NativeSuppressed[];
  suppressedCount(): number;
  /** The error that a join of a stopped coordinator would come to now. */
  status(): Uint8Array | null;
  joined(): boolean;
  cleanStopTypes(): string[];

  registerThread(
    kind: number,
    name: string,
    threadId: number | undefined,
    started: boolean,
  ): number;
  /** `threadId`: of the worker that it is, if so. False: it has ended, or a join has forgotten it. */
  startThread(id: number, threadId: number | undefined): boolean;
  readmitThread(id: number): boolean;
  endThread(id: number): void;
  threads(): NativeThread[];
  endedThreads(): NativeThread[];

  /** Whether the caller is one of the threads, or runs in one of `tasks`. */
  wouldJoinItself(tasks: number[]): boolean;
  /** Null: it would join itself. */
  beginJoin(tasks: number[]): number | null;
  joinRemainingMs(join: number, gracePeriodMs: number): number;
  joinHasEnded(join: number): boolean;
  /** Null: not yet; there will be progress. */
  finishJoin(join: number): NativeJoinResult | null;
  abandonJoin(join: number): void;

  /** Null: nested too deeply. */
  child(name: string, cleanStopTypes: string[], stopGracePeriodMs: number): NativeAttachment | null;
  /** Whether anybody but this object could request a stop. */
  hasOtherOwners(): boolean;
  publish(): void;
  unpublish(): void;
  addLink(description: string): number;
  removeLink(link: number): void;
  links(): string[];
  /** Described as a link until it has fired or is cancelled. */
  stopAfter(ms: number, error: Uint8Array, stack: string, description: string): number;
  cancelStopAfter(timer: number): void;
  /** 0: the platform has no such signals. */
  linkSignals(names: string[], numbers: number[], stack: string): number;
  unlinkSignals(link: number): void;
  /** Makes `object` known to other addons (allstop_node.h). */
  bindCapsule(object: object): void;
}

/** How the items of a queue are written; the order is that of core::BoundedQueue::Codec. */
export const CODECS = ['structured', 'bytes'] as const;

/**
 * The longest that one native call blocks a JavaScript thread, in milliseconds: meanwhile
 * `worker.terminate()` and `process.exit()` have to wait for that call.
 */
export const SLICE_MS = 50;

/** What a call of a queue came to: core::Status. */
export const STATUS = { ok: 0, cancelled: 1, deadlineExceeded: 4, outOfRange: 11 } as const;

/**
 * One queue in this JavaScript thread. A `generation` is of when a wait began
 * (`beginWait`); undefined: the call is not part of one. `ms`: how long it may block;
 * undefined: not at all, and `deadlineExceeded` means that it would have to wait.
 */
export interface NativeQueue {
  /** What `takeDirty` calls it. */
  readonly token: number;
  /** Of the queue, never used twice in a process. */
  readonly id: string;
  readonly name: string;
  readonly capacity: number;
  readonly codec: number;
  /** '': none. */
  readonly coordinatorId: string;

  beginWait(): number;
  /** Closing lets it in as long as it waits: until `endEnqueue`. False: closed or stopped. */
  beginEnqueue(generation: number): boolean;
  endEnqueue(): void;
  enqueue(
    item: string | Uint8Array,
    isSerialized: boolean,
    generation?: number,
    ms?: number,
  ): number;
  /** An item as it was written, or a status. It is to be answered with `received`. */
  dequeue(generation?: number, ms?: number): string | Uint8Array | number;
  /**
   * 1 to `max` items, 65,536 at most, to be answered with `received`. Of bytes: [sizes,
   * buffer, count, buffer, count ...], where each item begins at a multiple of 8. Of
   * values: the JSON text of their array; if some are serialized, [text, index, bytes,
   * index, bytes ...].
   */
  dequeueMany(max: number, generation?: number, ms?: number): unknown[] | string | number;
  /**
   * What was dequeued has arrived: true. Until then it goes back if this thread ends; when
   * that has begun, Node refuses the call (undefined), while JavaScript still runs a little.
   */
  received(): true | undefined;
  /** It goes back, at once. */
  notReceived(): void;
  /** Rings when continuing may come to something. False: it may now. */
  await(isProducer: boolean, generation: number): boolean;
  forget(isProducer: boolean): void;
  close(cancelPendingEnqueues: boolean): void;
  size(): number;
  closed(): boolean;
  /** A new attachment of its coordinator, of which there must be one. */
  coordinator(): NativeAttachment;
  publish(): void;
  /** Makes `object` known to other addons (allstop_node.h). */
  bindCapsule(object: object): void;
}

export interface NativeBinding {
  /** Names this process and this copy of the package. */
  readonly world: string;
  /** The version of the table that other addons get: '1.2'. */
  readonly abi: string;
  createCoordinator(
    name: string,
    cleanStopTypes: string[],
    stopGracePeriodMs: number,
  ): NativeAttachment;
  hasCoordinator(id: number): boolean;
  attachCoordinator(id: number): NativeAttachment | null;
  /** The coordinator that spawned this worker. */
  currentCoordinator(): NativeAttachment | null;
  createQueue(
    name: string,
    capacity: number,
    codec: number,
    coordinator: NativeAttachment | null,
  ): NativeQueue;
  attachQueue(id: number): NativeQueue | null;
  /** Tokens of the attachments that have news. */
  takeDirty(): number[];
  setDoorbellReferenced(referenced: boolean): void;
  /** Returns a ticket. Workers that look for their coordinator wait for its end. */
  beginSpawn(): number;
  setSpawned(attachment: NativeAttachment, threadId: number, name: string): void;
  endSpawn(ticket: number): void;
  forgetSpawned(threadId: number): void;
  noteUncaught(error: Uint8Array): void;
  takeUncaught(threadId: number): Uint8Array | null;
  /** This process ends soon after its parent has, whatever its threads compute. */
  exitWithParent(parentId: number): void;
  nextIdentity(): string;
}

/** What the addon exports: a binding for each evaluation of this file. */
export type Addon = {
  setup(options: {
    threadId: number;
    threadName: string;
    isWorker: boolean;
    allocateSlab: () => Int32Array;
    onRing: (token?: number) => void;
  }): NativeBinding;
};
