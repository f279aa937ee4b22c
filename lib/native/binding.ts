/** The types of the native addon. native/binding implements them. */

/** How a stop was requested. native/binding/convert.cc has the same names. */
export type Via =
  | 'call'
  | 'exception'
  | 'signal'
  | 'abort'
  | 'close'
  | 'timeout'
  | 'parent'
  | 'worker-exit'
  | 'uncaught'
  | 'hook'
  | 'defer';

/** The kinds of threads, in the order of core::ThreadKind. */
export const THREAD_KINDS = [
  'worker',
  'process',
  'task',
  'looper',
  'native',
  'hook',
  'custom',
] as const;
export type ThreadKind = (typeof THREAD_KINDS)[number];

/** The events that the core notes in a timeline, in the order of core::TimelineType. */
export const TIMELINE_TYPES = [
  'thread-started',
  'stop-requested',
  'first-seen',
  'ended',
  'straggler',
  'stop-cleared',
  'queue-full',
  'hook-began',
] as const;

/** The kinds of stops, in the order of core::StopKind. */
export const STOP_KINDS = ['plain', 'clean', 'error'] as const;

/** The effect of a request, in the order of core::StopOutcome. */
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
  signal: NodeJS.Signals | '';
  /** Milliseconds since 1970, by the clock of the requester's process. */
  at: number;
};

/** A requester. A field that is left out has the value of this JavaScript thread. */
export type RequesterOptions = Partial<Omit<NativeRequester, 'via' | 'stack'>> & {
  via: Via;
  /** The call site. A function is called after all waiting threads have been woken. */
  stack?: string | (() => string);
};

/** A stop; `error` is an encoded error (encoded-error.ts). */
export type NativeStop = {
  id: string;
  /** The number of the stop, from 1: each stop of a coordinator has its own. */
  generation: number;
  kind: number;
  error: Uint8Array | null;
  /** Milliseconds since the stop, by the monotonic clock. */
  ageMs: number;
};

/** A stop and its requester, whose times are milliseconds since 1970. */
export type NativeRecord = NativeStop & { requester: NativeRequester };

export type NativeSuppressed = { error: Uint8Array; requester: NativeRequester };

export type NativeThread = {
  /** Never used twice in a coordinator: what `registerThread` has returned. */
  id: number;
  name: string;
  kind: number;
  alive: boolean;
  /** False: a hook that has to run for a stop, and does not run yet. */
  hasBegun: boolean;
  unobserved: boolean;
  /** Whether a nursery ends though the thread is alive. Left out if nothing was said. */
  daemon?: boolean;
  /** Whether `threadId` is the OS thread id of a native thread. */
  isOsThread: boolean;
  threadId?: number;
  startedAt: number;
  /** 0 until the thread has ended. */
  endedAt: number;
};

/** A thread that a join has found alive and forgotten. */
export type NativeLeftBehind = NativeThread & {
  /** Milliseconds since the stop that the join saw, by the monotonic clock. */
  stopAgeMs: number;
};

/** Times are milliseconds since the first event. */
export type NativeTimeline = {
  /** The time of this object, by the monotonic clock. */
  ageMs: number;
  /** When the first event was: milliseconds since 1970. */
  startedAt: number;
  /** The number of older events, which were forgotten. */
  dropped: number;
  events: {
    at: number;
    type: number;
    kind: number;
    unobserved: boolean;
    /** The id of the registered thread; 0 if there is none. */
    thread: number;
    /** The number of the stop; 0 if the event is not about a stop. */
    generation: number;
    /** Of the thread or the queue; '' if there is none. */
    name: string;
    /** Of the registered thread, if it was known: as in NativeThread. */
    threadId?: number;
    /** When the registered thread was started: milliseconds since 1970. */
    threadStartedAt: number;
  }[];
};

export type NativeJoinResult = {
  /** The first stop that the join saw. */
  stop: NativeStop | null;
  /** The error that the join throws: the recorded one, or one reported without a stop. */
  error: Uint8Array | null;
  stragglers: NativeThread[];
};

/**
 * One coordinator in this JavaScript thread. Call `takeDirty` after any call that can change
 * the state: the doorbell does not ring for changes that this thread makes.
 */
export interface NativeAttachment {
  /** The slab with this coordinator's mirror, and those of others. */
  readonly words: Int32Array;
  /**
   * Index of this coordinator's mirror in `words`. The mirror is not 0 while the coordinator is
   * stopped. The word after the mirror is the generation | 0.
   */
  readonly wordIndex: number;
  /** Identifies this object in the result of `takeDirty`. */
  readonly token: number;
  /** The id of the coordinator, never used twice in a process. */
  readonly id: string;
  readonly name: string;
  readonly stopGracePeriodMs: number;

  requestStop(
    error: Uint8Array | null,
    requester: RequesterOptions,
    echoIds: string[],
    abortEchoIds: string[],
    hasCaller: boolean,
    isThrown: boolean,
    recordId?: string,
  ): number;
  /** From now on `clearStop` is refused, in every thread. */
  forbidClear(): void;
  isClearable(): boolean;
  /** As `forbidClear`; and stop records are provisional: joins wait for `answerStop` or `answerNone`. */
  awaitAnswer(): void;
  /** The arbiter's answer: this stop is the record. */
  answerStop(error: Uint8Array | null, requester: RequesterOptions, recordId: string): void;
  /** No answer will come: the provisional record is the record. */
  answerNone(): void;
  /** @returns false if the parent is stopped, or after `forbidClear` */
  clearStop(): boolean;
  /** Blocks for at most `ms`. @returns true when stopped, or when the generation has changed */
  waitSlice(generation: number, ms: number): boolean;
  generation(): number;
  /** @returns the current generation: if `interested`, later stops ring the doorbell */
  setInterested(interested: boolean): number;
  /** The first stop since the last call of `takeUnseen`, or null. */
  takeUnseen(): NativeStop | null;
  pastStopId(): string; // of the last stop that was cleared; '' if there is none
  /** The current stop, or null. Never waits. */
  stop(): NativeStop | null;
  /**
   * The current stop with its requester, or null. Waits, for a second at most, until the thread
   * that requested the stop has formatted its call site; `stop` does not wait.
   */
  record(): NativeRecord | null;
  suppressed(): NativeSuppressed[];
  suppressedCount(): number;
  /** The first error of `report`, unless it is suppressed. */
  reported(): NativeSuppressed | null;
  /** The error that a join would throw now if the coordinator is stopped. */
  status(): Uint8Array | null;
  /** What `status()` gives, else the first later error since the stop that is not clean. */
  firstError(): Uint8Array | null;
  joined(): boolean;
  cleanStopTypes(): string[];

  registerThread(
    kind: number,
    name: string,
    threadId: number | undefined,
    started: boolean,
    daemon?: boolean,
  ): number;
  /**
   * From now on joins wait for the thread. `threadId`: a worker's; undefined for other threads.
   *
   * @returns false if the thread has ended, or if a join has forgotten it before it was started
   */
  startThread(id: number, threadId: number | undefined): boolean;
  readmitThread(id: number): boolean;
  endThread(id: number): void;
  /**
   * The newest stop that this hook has not run for, also if it has been cleared: the hook has to
   * run now. Null if there is none.
   */
  takeStopOfHook(id: number): NativeRecord | null;
  /**
   * The run that `takeStopOfHook` began has ended; the hook stays registered.
   *
   * @returns false if another stop has come meanwhile: the hook has to run again
   */
  endHook(id: number): boolean;
  /**
   * Records an error beside the stop: joins throw it if nothing else has failed.
   * @param givenBefore - of a hook: `errorsGivenSoFar()` when it began
   * @returns index in STOP_OUTCOMES; 'stopped': it is the error beside the stop
   */
  report(
    error: Uint8Array,
    requester: RequesterOptions,
    echoIds: string[],
    abortEchoIds: string[],
    isThrown: boolean,
    givenBefore?: number,
  ): number;
  threads(): NativeThread[];
  leftBehindThreads(): NativeLeftBehind[];
  endedThreads(): NativeThread[];
  /** This JavaScript thread has seen the stop: the first-seen event of the timeline. */
  noteSeen(): void;
  /** @param since - how many of the first events are left out (0) */
  timeline(since?: number): NativeTimeline;
  /** Sets whether further events of the timeline ring. @returns the number of events so far */
  watchEvents(watches: boolean): number;

  /** Whether a join would wait for this thread, or for one of `tasks`, in which the caller runs. */
  wouldJoinItself(tasks: number[]): boolean;
  /**
   * @param waitsForDaemons - false leaves daemon threads out; default true
   * @returns null if the caller would join itself
   */
  beginJoin(tasks: number[], waitsForDaemons?: boolean): number | null;
  joinRemainingMs(join: number, gracePeriodMs: number): number;
  joinHasEnded(join: number): boolean;
  /**
   * @returns null if the join has not ended: since `joinRemainingMs` a thread has begun, or a stop
   *   has come whose record is provisional
   */
  finishJoin(join: number, gracePeriodMs: number): NativeJoinResult | null;
  abandonJoin(join: number): void;

  /** @returns null if coordinators are nested too deeply */
  child(name: string, cleanStopTypes: string[], stopGracePeriodMs: number): NativeAttachment | null;
  /** Whether something other than this object could still stop the coordinator. */
  hasOtherOwners(): boolean;
  /** Whether another thread or addon has the coordinator, or this thread's `handle` was read. */
  isShared(): boolean;
  publish(): void;
  unpublish(): void;
  addLink(description: string): number;
  removeLink(link: number): void;
  links(): string[];
  /** `links()` has the `description` until the timer has fired or is cancelled. */
  stopAfter(ms: number, error: Uint8Array, stack: string, description: string): number;
  cancelStopAfter(timer: number): void;
  /** Ends the process `ms` after a stop. @param code undefined: by the signal, else 1 */
  exitAfterStop(ms: number, code: number | undefined, description: string): number;
  cancelExitAfterStop(exit: number): void;
  /**
   * What the end of the process says of workers, by all attachments; replaces what this attachment
   * has said. `numbers`: of each text, for how long the function has run (ms), and the OS's id of
   * its thread or process (0: unknown).
   */
  setBusyWorkers(texts: string[], numbers: number[]): void;
  /** At each stop the core stores `value` in `words[index]`; at once if the coordinator is stopped. */
  mirror(words: Int32Array, index: number, value: number): number;
  endMirror(mirror: number): void;
  /** @returns 0 if native code cannot handle signals here (Windows): then JavaScript listens */
  linkSignals(names: string[], numbers: number[], stack: string): number;
  /** @param endsPress else further signals do nothing until the first one is 500 ms old */
  unlinkSignals(link: number, endsPress: boolean): void;
  /** Attaches a capsule to `object`, by which other addons get a native handle (allstop_node.h). */
  bindCapsule(object: object): void;
  /** The same for an AbortSignal. Its reference does not count as one of another owner. */
  bindSignal(signal: object): void;
}

/** How the items of a queue are encoded, in the order of core::BoundedQueue::Codec. */
export const CODECS = ['structured', 'bytes'] as const;

/**
 * The longest that one native call blocks a JavaScript thread, in milliseconds: meanwhile
 * `worker.terminate()` and `process.exit()` have to wait for that call.
 */
export const SLICE_MS = 50;

/** The results of queue calls: values of core::Status. */
export const STATUS = { ok: 0, cancelled: 1, deadlineExceeded: 4, outOfRange: 11 } as const;

/**
 * One queue in this JavaScript thread.
 *
 * `generation`: the result of `beginWait` when the wait began that the call is part of;
 * undefined outside a wait. `ms`: how long the call may block. Undefined does not block, and
 * then `deadlineExceeded` means that the call would have to wait.
 */
export interface NativeQueue {
  /** Identifies this object in the result of `takeDirty`. */
  readonly token: number;
  /** The id of the queue, never used twice in a process. */
  readonly id: string;
  readonly name: string;
  readonly capacity: number;
  readonly codec: number;
  /** '' if the queue has no coordinator. */
  readonly coordinatorId: string;

  beginWait(): number;
  /**
   * From now until `endEnqueue` this producer counts as waiting: its item can still enter a queue
   * that was closed with `close(false)` meanwhile.
   *
   * @returns false if the queue is closed or stopped
   */
  beginEnqueue(generation: number): boolean;
  endEnqueue(): void;
  enqueue(
    item: string | Uint8Array,
    isSerialized: boolean,
    generation?: number,
    ms?: number,
  ): number;
  /** @returns an encoded item, to be confirmed with `received`, or a status */
  dequeue(generation?: number, ms?: number): string | Uint8Array | number;
  /**
   * Takes `min` to `max` items, 65,536 at most (or `min`, if that is more), to be confirmed with
   * `received`; fewer if the queue is stopped, or closed and no enqueue waits. The codec 'bytes'
   * gives [sizes, buffer, count, buffer, count ...], where each item begins at a multiple of 8.
   * 'structured' gives the JSON text of the array of values; or, if some values are serialized
   * or the text is long, [texts, index, bytes, index, bytes ...], where the arrays of all texts
   * follow each other.
   *
   * @returns a status if the queue has fewer than `min` items
   */
  dequeueMany(max: number, min: number, generation?: number): unknown[] | string | number;
  /**
   * Confirms the items that were dequeued. Unconfirmed items go back to the queue when this
   * thread ends.
   *
   * @returns undefined if the thread is ending: Node refuses native calls then, while
   *   JavaScript still runs for a moment
   */
  received(): true | undefined;
  /** Gives the items that were dequeued back to the queue now. */
  notReceived(): void;
  /**
   * Has the doorbell ring when another attempt may succeed: for a consumer, when the queue has
   * `least` items; for a producer, when it has room (`least` is 1).
   *
   * @returns false if an attempt may succeed now: then the doorbell does not ring
   */
  await(isProducer: boolean, generation: number, least: number): boolean;
  forget(isProducer: boolean): void;
  close(cancelPendingEnqueues: boolean): void;
  size(): number;
  closed(): boolean;
  /** A new attachment of the queue's coordinator. Throws if the queue has none. */
  coordinator(): NativeAttachment;
  publish(): void;
  /** Attaches a capsule to `object`, by which other addons get a native handle (allstop_node.h). */
  bindCapsule(object: object): void;
}

/** The types of variables, in the order of core::VariableType. */
export const VARIABLE_TYPES = ['number', 'Float64Array', 'Float32Array', 'Int32Array'] as const;

export type NativeArray = Float64Array | Float32Array | Int32Array;
/** A number, or the typed array of the variable's type and length. */
export type NativeValue = number | NativeArray;

/** One variable of a cluster, shared by the threads of this process. */
export interface NativeVariable {
  /** An index into VARIABLE_TYPES. */
  readonly type: number;
  readonly byteLength: number;
  /** For `openPublished` in other processes; undefined: the bytes are this process's alone. */
  readonly path?: string;
  /** Copies the value into `into`. @returns the value of a number, which needs no `into` */
  read(into?: NativeValue): number | undefined;
  assign(value: NativeValue): void;
  /**
   * Adds `delta`, unless the call's AssignAdd of this ordinal (from 1) has been added before.
   * A `call` of 0 stands for no call: then the delta always counts.
   */
  assignAdd(delta: NativeValue, call: number, ordinal: number): void;
  /** Attaches a capsule to `object`, by which other addons get a native handle (allstop_node.h). */
  bindCapsule(object: object): void;
}

/** The variables of one cluster. */
export interface NativeVariables {
  /** For `attachVariables` in another thread. Never used twice in a process. */
  readonly id: string;
  /**
   * @param isPublished - other processes of this machine shall read the value, if the platform lets
   *   them. It costs a file descriptor.
   * @returns the variable of this name; null if it has another type or length
   */
  define(
    name: string,
    type: number,
    value: NativeValue,
    isPublished: boolean,
  ): NativeVariable | null;
  find(name: string): NativeVariable | null;
  /** Reads several variables as they stand at one moment; of a number into a Float64Array. */
  readAll(variables: readonly NativeVariable[], into: readonly NativeArray[]): void;
  /** Assigns several variables: no other operation sees some of them assigned. */
  assignAll(variables: readonly NativeVariable[], values: readonly NativeArray[]): void;
  /** The call has ended for good: no `assignAdd` of it follows. */
  forget(call: number): void;
  /** No process opens a value any more: closes the file descriptors. */
  endPublishing(): void;
}

/** What a fork line carries, in the order of ForkFrame::Kind. */
export const FORK_FRAMES = [
  'hello',
  'stop',
  'none',
  'late',
  'dying',
  'cancel',
  'reported',
  'exiting',
  'unknown',
] as const;

/** `frame`: an index into FORK_FRAMES. */
export type NativeForkFrame = NativeRecord & { frame: number };

export type NativeUnseen = {
  errors: { error: Uint8Array; source: string; threadName: string }[];
  /** The number of older errors, which were forgotten. */
  dropped: number;
  hasFailed: boolean;
};

/** What a connection of SQLite obeys; an external value of Node-API. */
export interface SqliteConnection {
  readonly isSqliteConnection: true;
}

export interface NativeBinding {
  /** Identifies this process and this copy of the package. */
  readonly world: string;
  /** The version of the function table for other addons: '1.2'. */
  readonly abi: string;
  createCoordinator(
    name: string,
    cleanStopTypes: string[],
    stopGracePeriodMs: number,
  ): NativeAttachment;
  hasCoordinator(id: number): boolean;
  attachCoordinator(id: number): NativeAttachment | null;
  /**
   * The coordinator that spawned this worker; null if none did; undefined if that is not known
   * after 50 ms, since a spawn is under way: ask again.
   */
  currentCoordinator(): NativeAttachment | null | undefined;
  createQueue(
    name: string,
    capacity: number,
    codec: number,
    coordinator: NativeAttachment | null,
  ): NativeQueue;
  attachQueue(id: number): NativeQueue | null;
  /** Makes an object to which the next `loadExtension` of this thread binds its connection. */
  connectSqlite(): SqliteConnection;
  /** @returns false if the connection has been closed */
  obeySqlite(
    connection: SqliteConnection,
    coordinator: NativeAttachment | null,
    everySteps: number,
  ): boolean;
  /** The queues of a coordinator, of all threads. `consumers`: how many threads wait to dequeue. */
  queuesOf(coordinator: NativeAttachment): {
    id: number;
    name: string;
    size: number;
    capacity: number;
    producers: number;
    consumers: number;
  }[];
  createVariables(): NativeVariables;
  /** @returns null if the object that `createVariables` made is gone */
  attachVariables(id: number): NativeVariables | null;
  /**
   * The value of a variable of another process, by its `path`: a function that copies it, and
   * returns false if writes were in the way, every time. Null: this process cannot read it.
   */
  openPublished(path: string, byteLength: number): ((into: NativeArray) => boolean) | null;
  /** Attaches a capsule that tells other addons: the value is in another process. */
  bindRemoteVariable(object: object): void;
  /** The OS's id of a JavaScript thread of this process; 0 if it has not loaded the addon. */
  osThreadIdOf(threadId: number): number;
  /** Tokens of the attachments and queues whose state has changed. */
  takeDirty(): number[];
  setDoorbellReferenced(referenced: boolean): void;
  /** @returns a ticket. Until `endSpawn`, workers that look for their coordinator wait. */
  beginSpawn(): number;
  setSpawned(attachment: NativeAttachment, threadId: number, name: string): void;
  endSpawn(ticket: number): void;
  forgetSpawned(threadId: number): void;
  /** `isFatal`: no handler of the program's takes the error, so this worker dies of it. */
  noteUncaught(error: Uint8Array, isFatal: boolean): void;
  takeUncaught(threadId: number): Uint8Array | null;
  /** Notes an error that the program was not given yet. `source`: what threw it, for people. */
  noteUnseen(error: Uint8Array, source: string): void;
  /** The program was given the error with this id. @returns whether it had been noted as unseen */
  giveError(id: string): boolean;
  errorsGivenSoFar(): number;
  /** From now on `hasFailed` is true in the result of `takeUnseen`, in whichever thread. */
  failProcess(): void;
  /** Takes the errors that the program was not given. Null: another thread is to write them. */
  takeUnseen(): NativeUnseen | null;
  /** Whether no thread of this process has asked before. */
  mayWarnOfLoopers(): boolean;
  /** Waits for a slow reader, and gives up when it has read nothing for `patienceMs`. */
  writeToStandardError(text: string, patienceMs: number): void;
  /** From now on this process ends `graceMs` after its parent, even if all threads are busy. */
  exitWithParent(parentId: number, graceMs: number): void;
  /** Ends this process at once. (`process.exit()` waits for workers that are blocked in native code.) */
  endProcess(exitCode: number): never;
  /**
   * Opens the line to a child process that is about to be started: native code writes the stop of
   * the coordinator to it. It ends with this thread.
   * @returns its id, and the child's end: a descriptor that the child inherits; Windows: a name
   */
  openForkLine(attachment: NativeAttachment): { id: number; end: number | string };
  /** The child has been started: closes the descriptor of `openForkLine`, if there is one. */
  closeForkDescriptor(line: number): void;
  /** Names its open file, in each process that inherits it. Throws if none. Not on Windows. */
  identityOfDescriptor(descriptor: number): string;
  /** The child is registered: the line outlives this thread, until it has carried the stop. */
  keepForkLine(line: number): void;
  /** Whether a stop was sent to the child. */
  forkLineHasStopped(line: number): boolean;
  /** The child's stop is no stop here: its record is final, as it is. */
  refuseForkAnswer(line: number): void;
  /** Tells the worker process that its call `id` is cancelled: `takeCancelledCalls` there. */
  cancelForkedCall(line: number, id: number, reason: Uint8Array): void;
  closeForkLine(line: number): void;
  /** Blocks until the child has ended, `ms` at most: for the exit of this process. */
  awaitChild(pid: number, ms: number): boolean;
  /** Blocks until standard output or standard error takes bytes, 50 ms at most. */
  awaitWritable(descriptor: number): boolean;
  /** Blocks until the parent's state is known. `down`, `up`: descriptors; on Windows `down` a name. */
  attachToParent(
    attachment: NativeAttachment,
    down: number | string,
    up: number,
    parent: number,
  ): void;
  /**
   * As `attachToParent`, for a process that tells its parent of its own stop by other means.
   * `hasCancelled` is one word of shared memory, which is set to 1 when `takeCancelledCalls` has
   * something new. This process ends `orphanGraceMs` after the line, even if all threads are busy.
   */
  listenToParent(
    attachment: NativeAttachment,
    down: number | string,
    parent: number,
    hasCancelled: Int32Array,
    orphanGraceMs: number,
  ): void;
  /** The calls that the parent has cancelled since the last call, with encoded errors. */
  takeCancelledCalls(): { id: number; reason: Uint8Array }[];
  /** Sends what the parent has not been told, and the error that this process dies of. */
  sendToParent(dyingOf: Uint8Array | null): void;
  /** Tells the parent that this process ends with an exit code that allstop has set. */
  sendExitCode(code: number): void;
  /** @returns null: these bytes are no frame */
  readForkFrame(bytes: Uint8Array): NativeForkFrame | null;
  /** Installs the handlers of all linked signals again, after the runtime has removed them. */
  reinstallSignals(): void;
  nextIdentity(): string;
}

/** The exports of the addon. Each JavaScript thread makes its own binding with `setup`. */
export type Addon = {
  setup(options: {
    threadId: number;
    threadName: string;
    isWorker: boolean;
    allocateSlab: () => Int32Array;
    onRing: (token?: number) => void;
  }): NativeBinding;
};
