/**
 * A place for one worker. When its worker dies, the slot starts another.
 *
 * 1. `#sent` holds the closures that were sent to the worker and have not ended, in the order
 *    in which the worker takes them. Each has a claim (protocol.ts) of its own.
 * 2. The claim says whether the closure was started, and whether it has ended: a closure is never
 *    recalled and run, too. A process shares no claims with us: it is sent one closure at a time,
 *    which counts as running.
 * 3. A process receives arguments and sends results as bytes, each packed by itself: a value
 *    that cannot be read fails only its own function. A thread's message that cannot be read
 *    may contain the result of any started closure: the slot ends that worker, and the worker's
 *    closures run again. A second attempt announces its result, so that it is known which
 *    function has failed if that result cannot be read.
 * 4. A suspect (`Closure.isSuspect`) is alone in `#sent`.
 * 5. Messages of a worker that is gone or stuck are ignored, and its requests not answered.
 * 6. A retiring worker takes nothing more, and ends when `#sent` is empty: after its teardown
 *    function, if there is one. So `retire` ends no function.
 * 7. A thread that runs nothing and does not begin what it was sent is asked (silence.ts). Until it
 *    answers it takes nothing more; if it does not answer in time, it is ended.
 */

import type { Definition } from '../../cluster/variables/variable.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import { type ShownWorker, updateBusyWorkers } from '../../coordinator/threads/busy-workers.ts';
import { CancelledError } from '../../errors/errors.ts';
import { settingUp, type TaskPhase } from '../../errors/phases.ts';
import type { TaskReadiness } from '../../errors/readiness-report.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { passedAsBytes } from '../../values/packed-arguments.ts';
import { toThread } from '../../values/to-thread.ts';
import { packValue } from '../../values/value.ts';
import type { Call, Closure } from '../queue/closure.ts';
import type { Placement } from '../queue/lines/placement.ts';
import type { Cancellation, RunningCall, StrategyHost, WorkerInfo } from '../queue/strategy.ts';
import type { FromWorker, SentResult, ToWorker } from '../worker/messages.ts';
import { whyNotImported } from '../worker/module/import-error.ts';
import type { Fate, WorkerResource } from '../worker/protocol.ts';
import { argumentError, STATE } from '../worker/protocol.ts';
import { Batch } from './batch.ts';
import {
  type ChannelListener,
  startProcess,
  startThread,
  type WorkerChannel,
  type WorkerName,
  type WorkerOptions,
} from './channel.ts';
import { Claims, type SentToWorker } from './claims.ts';
import { GraceTimers } from './grace-timers.ts';
import { Ending, setupError } from './hooks.ts';
import { outcomeOf, unreadable } from './outcome.ts';
import { Preparations } from './preparations.ts';
import { beginsBy, inOrderOfReturn, isOnlyHere, SentClosures } from './sent-closures.ts';
import { noAnswer, Silence } from './silence.ts';
import type { SlotListener, SlotSettings } from './slot-listener.ts';
import { readinessOf, runningCall, shownWorker, stuckWorker, workerInfo } from './slot-report.ts';

const recycled = (): Error => new CancelledError('The worker is replaced by a new one');

export class WorkerSlot {
  readonly index: number;
  readonly #name: WorkerName;
  readonly #options: WorkerOptions;
  readonly #host: StrategyHost;
  readonly #listener: SlotListener<WorkerSlot>;
  readonly #start: (listener: ChannelListener) => WorkerChannel;
  #channel: WorkerChannel | undefined;
  readonly #sent = new SentClosures<SentToWorker>();
  #claims: Claims | undefined;
  readonly #preparations: Preparations;
  readonly #batch = new Batch();
  /** The worker has imported the module, and its setup function has ended. */
  isLoaded = false;
  /** A setup function has failed here since a worker was last ready. */
  hasFailedSetup = false;
  /** Why this worker has no function to run: its module, or its setup function, has failed. */
  #startFailure: Error | undefined;
  /** Why `retire` was called. */
  #retiredFor: Error | undefined;
  #ending: Ending | undefined;
  #phase: TaskPhase = 'starting';
  #since = new Date();
  #cause: unknown;
  /** The pid of the current or last worker. Never 0: with it process.kill() signals our own group. */
  #pid = Number.NaN;
  /** The closure whose result is the next message, and how long it ran. */
  #announced: { id: number; us: number } | undefined;
  /** The function that ended here last, and Date.now() then. */
  #last = { name: undefined as string | undefined, at: 0 };
  /** Since when (performance.now()) the worker has nothing to do, if it is idle. */
  idleSince = 0;
  #hasSuspect = false;
  completed = 0;
  /** How many functions the current worker has ended. */
  #ended = 0;
  /** How often another worker has taken the place of one that had died or was ended by force. */
  restarts = 0;
  /** Deaths while the worker ran no function, since a function last ended here. */
  deaths = 0;
  /** Why `kill` was called. A death by `kill` is not counted as a failure of the worker. */
  #killedFor: Error | undefined;
  /** The cancelled closure because of which `kill` was called. */
  #killedBy: Closure | undefined;
  readonly #graceTimers = new GraceTimers();
  /** How long functions may run. */
  readonly #runTimers = new GraceTimers();
  readonly #silence: Silence;
  /** Threads of this slot that are blocked in native code and could not be ended. */
  readonly stuck: { info: WorkerInfo; channel: WorkerChannel }[] = [];

  constructor(settings: SlotSettings, host: StrategyHost, listener: SlotListener<WorkerSlot>) {
    const { index, isolation, options } = settings;
    const { name = { job: 'worker', index } } = settings;
    this.index = index;
    this.#host = host;
    this.#listener = listener;
    this.#name = name;
    this.#options = options;
    this.#preparations = new Preparations(host);
    this.#silence = new Silence(host.cancelGraceMs, {
      isAtWork: () => !this.isReady || this.#oldest('running') !== undefined,
      beginsBy: () => beginsBy(this.#oldest('sent')),
      ask: () => this.post({ kind: 'ping' }),
      onLate: () => {
        this.#sent.allowLonger();
        this.#giveBack();
        listener.onFree(this);
      },
      onNoAnswer: (graceMs) => this.kill(noAnswer(name, graceMs, this.#last.name)),
    });
    const start = isolation === 'thread' ? startThread : startProcess;
    this.#start = (own) => start(host, options, name, own);
  }

  /** @throws the error of starting a thread or process */
  start(): void {
    this.isLoaded = false;
    this.#startFailure = undefined;
    this.#killedFor = undefined;
    this.#killedBy = undefined;
    this.#ended = 0;
    this.#last.name = undefined;
    this.#retiredFor = undefined;
    this.#announced = undefined;
    this.enter('starting');
    let isOpen = true;
    const channel = this.#start({
      onMessage: (message) => {
        if (isOpen && this.#channel === channel) this.#receive(message);
      },
      onUnreadable: (error) => isOpen && this.#channel === channel && this.#onUnreadable(error),
      isIdle: () => this.isLoaded && this.#sent.size === 0 && this.#preparations.areOver,
      onStuck: () => this.#abandon(channel),
      onGone: (cause) => {
        isOpen = false;
        this.#onGone(channel, cause);
      },
    });
    this.#channel = channel;
    this.#preparations.begin(channel);
    this.#claims = new Claims(channel.words, channel.isShared);
    this.#pid = channel.pid;
    this.define(...this.#host.variables.definitions);
    // The worker is not registered as a thread of the coordinator: else the coordinator's `join`
    // would wait for the worker, which lives until the cluster is closed.
    this.#shown.set(this, shownWorker(this.#name, channel, this));
  }

  /** The workers that `explain()` and the end of the process show. */
  get #shown(): Map<object, ShownWorker> {
    return attachmentOf(this.#host.coordinator).workers;
  }

  get isAlive(): boolean {
    return this.#channel !== undefined;
  }

  get isIdle(): boolean {
    return this.isReady && this.#sent.size === 0 && !this.#silence.isAsked;
  }

  get isReady(): boolean {
    return this.isLoaded && this.#preparations.areOver && !this.isEnding;
  }

  /** Whether `kill` or `retire` was called. */
  get isEnding(): boolean {
    return this.#killedFor !== undefined || this.#retiredFor !== undefined;
  }

  /** How long the closures that were sent are expected to run, in microseconds. */
  get expectedUs(): number {
    return this.#sent.expectedUs;
  }

  /** The number of closures that were sent and have not ended. */
  get running(): number {
    return this.#sent.size;
  }

  /** Whether the worker may run one more closure beside less than `most` others. */
  hasRoom(most: number): boolean {
    return this.#canTakeMore && this.isReady && this.#sent.size < most;
  }

  get #canTakeMore(): boolean {
    const isFresh = this.#ended + this.#sent.size < this.#mostTasks; // else it is replaced
    return isFresh && !this.#hasSuspect && !this.#silence.isAsked;
  }

  get #mostTasks(): number {
    return this.#options.recycle?.tasks ?? Number.POSITIVE_INFINITY;
  }

  /** Whether closures can be sent in advance, while the worker runs another. */
  get canQueue(): boolean {
    return this.#canTakeMore && this.#channel?.isShared === true && this.#claims?.hasFree === true;
  }

  /** Whether the worker may run closures with this placement. */
  canRun(placement: Placement): boolean {
    return placement.fits(this.index, {});
  }

  /** Sends a closure with the next `flush`. */
  add(closure: Closure, call: Call, expectedUs: number): void {
    const channel = this.#channel as WorkerChannel;
    const { name, perWorker, transfer, hasVariables } = call;
    let { args } = call;
    try {
      if (!channel.isShared) args = passedAsBytes(args);
    } catch (error) {
      // The packing refuses some values that structuredClone has accepted: a MessagePort, say.
      const value = argumentError(error, name, args as readonly unknown[], packValue);
      this.#host.ended(closure, { state: 'failed', value });
      return;
    }
    const claim = (this.#claims as Claims).take(closure.id);
    this.#sent.add({ closure, claim, expectedUs, sentAt: Date.now() });
    if (closure.isSuspect) this.#hasSuspect = true;
    const isMoved = transfer.length > 0 && channel.isShared;
    if (isMoved) closure.move();
    const { id, attempts, context, runTimeoutMs } = closure;
    const posted = channel.isShared && !isMoved ? toThread(args) : { args, moved: [] };
    const isKeyed = call.isKeyed === true;
    const tellsStart = runTimeoutMs !== undefined;
    const what = [id, claim, attempts + 1, name, posted.args, perWorker] as const;
    const moved = isMoved ? transfer : posted.moved;
    this.#batch.add([...what, hasVariables, tellsStart, isKeyed, context], moved);
  }

  /** Has the worker make a resource. `isReady` is false until the worker reports it as made. */
  prepare(resource: WorkerResource): void {
    this.#preparations.add(resource);
    if (!this.#preparations.areOver) this.enter('building-dataset');
  }

  /** Nobody has the data set or iterator any more. */
  forget(id: number): void {
    this.#preparations.forget(id);
    if (this.isLoaded) this.post({ kind: 'forget', id });
  }

  /** Sends the closures that were passed to `add` as one message; if it cannot, all fail. */
  flush(): void {
    const { ids = [], error } = this.#batch.send(this.#channel) ?? {};
    for (const id of ids) {
      const sent = this.#forget(id);
      if (sent !== undefined) this.#host.ended(sent.closure, { state: 'failed', value: error });
    }
    if (this.#sent.size > 0) this.#silence.watch();
  }

  /** @returns whether the closure was recalled: it was here, and the worker had not started it */
  recall(closure: Closure): boolean {
    if (!this.#recall(closure)) return false;
    this.#silence.ask(); // else it would be sent the next closure at once, and might not begin that
    return true;
  }

  #recall(closure: Closure): boolean {
    const sent = this.#sent.get(closure);
    if (sent === undefined || this.#claims?.recall(sent.claim, closure.id) !== true) return false;
    this.#forget(closure.id);
    return true;
  }

  /** Recalls at most `count` closures that were not started, the last one first. */
  recallSome(count: number): Closure[] {
    const back: Closure[] = [];
    for (const { closure } of this.#sent.newestFirst()) {
      if (back.length === count) break;
      if (closure.placement !== undefined) continue; // an idle worker may not run it
      if (!isOnlyHere(closure) && this.#recall(closure)) back.push(closure);
    }
    return back;
  }

  /**
   * Asks a closure to end, or recalls it if it was not started. @returns false if it is not here
   */
  cancel(closure: Closure, { reason, replace }: Cancellation): boolean {
    const sent = this.#sent.get(closure);
    if (sent === undefined) return false;
    if (this.recall(closure)) {
      this.#host.returned(closure, 'sent');
      return true;
    }
    this.#claims?.cancel(sent.claim, closure.id);
    this.post({ kind: 'cancel', id: closure.id, reason: encode(reason).bytes });
    if (!replace) return true;
    const { cancelGraceMs } = this.#host;
    this.#graceTimers.start(closure.id, cancelGraceMs, () => {
      const { name } = closure.work as Call;
      const text = `'${name}' was cancelled and did not end within ${cancelGraceMs} ms`;
      this.#killedBy = closure;
      this.kill(new CancelledError(text));
    });
    return true;
  }

  /** Tells the worker of variables. (A thread that shares their memory finds them by their names.) */
  define(...definitions: Definition[]): void {
    const isFound = this.#channel?.isShared === true && this.#host.variables.id !== undefined;
    if (isFound || definitions.length === 0) return;
    this.post({ kind: 'define', definitions });
  }

  /** Ends the worker by force. `onGone` follows, also for a thread that is stuck. */
  kill(cause: Error): void {
    const channel = this.#channel;
    if (channel === undefined || this.#killedFor !== undefined) return;
    this.#killedFor = cause;
    if (this.#startFailure === undefined) this.enter('stopping'); // else its phase says more
    channel.kill();
  }

  /** The worker has said that it cannot begin. It is ended, and that is its own failure. */
  startHasFailed(cause: Error): void {
    this.#startFailure = cause;
    this.kill(cause);
  }

  /** Ends the worker as somebody outside would: unlike `kill`, this is a failure of the worker. */
  crash(): void {
    this.#channel?.kill();
  }

  /**
   * Ends the worker when it runs nothing: what it was only sent goes back, and its teardown
   * function is called, with `cancelGraceMs` to end. `onGone` follows.
   */
  retire(cause: Error): void {
    if (this.#channel === undefined || this.isEnding) return;
    this.#retiredFor = cause;
    this.enter('stopping');
    this.#giveBack();
    if (this.#sent.size > 0) this.leave();
    this.#endIfRetired();
  }

  /** Returns what the worker has not begun. */
  #giveBack(): void {
    const back = this.recallSome(this.#sent.size);
    for (const closure of back) this.#host.returned(closure, 'sent');
  }

  #endIfRetired(): void {
    const cause = this.#retiredFor;
    if (cause === undefined || this.#sent.size > 0 || this.#ending !== undefined) return;
    const { teardown } = this.#options;
    const { job, index } = this.#name;
    let does: string | undefined;
    if (teardown !== undefined) does = `The teardown function '${teardown}'`;
    else if (this.#preparations.hasIterators) does = 'return() of the iterators';
    // A thread loses nothing by force; nor does a worker that has not begun.
    const hasToEnd = does !== undefined || this.#channel?.isShared === false;
    if (!hasToEnd || !this.isLoaded) {
      this.kill(cause);
      return;
    }
    const what = does && `${does} of ${job}:${index}`;
    this.#ending = new Ending(what, this.#host.cancelGraceMs, () => this.kill(cause));
    this.post({ kind: 'end', letsGo: true });
  }

  /** Tells the functions that run, and those that follow, that the worker will be asked to end. */
  leave(): void {
    if (this.isLoaded) this.post({ kind: 'leave' });
  }

  get info(): WorkerInfo {
    let state: WorkerInfo['state'] = 'lost';
    if (this.#channel !== undefined) {
      if (!this.isLoaded || !this.#preparations.areOver) state = 'starting';
      else state = this.isIdle ? 'idle' : 'busy';
    }
    return workerInfo(this.#name, this.#pid, state, this);
  }

  /** The functions that the worker runs. */
  get calls(): RunningCall[] {
    const running = this.#sent.newestFirst().filter((sent) => this.#fateOf(sent) === 'running');
    // Of several at once, each began when it was sent.
    const runsMany = (this.#options.concurrency ?? 1) > 1;
    return running.map((sent) => runningCall(sent, runsMany ? 0 : this.#last.at));
  }

  #oldest(fate: Fate): SentToWorker | undefined {
    return this.#sent.newestFirst().findLast((sent) => this.#fateOf(sent) === fate);
  }

  #fateOf({ closure, claim }: SentToWorker): Fate {
    return this.#claims?.fateOf(claim, closure.id) ?? 'running';
  }

  /** As what a closure is returned. One whose neighbour was to be ended is not charged. */
  #fateAfterDeath(sent: SentToWorker): Fate {
    const fate = this.#fateOf(sent);
    // A repeated closure's result is sent at once. If it is lost all the same, the worker died of it.
    const isRepeated = sent.closure.attempts > 0 && this.#killedFor === undefined;
    if (fate === 'ended' && isRepeated) return 'running';
    const isNeighbour = this.#killedBy !== undefined && this.#killedBy !== sent.closure;
    return fate === 'running' && isNeighbour ? 'ended' : fate;
  }

  get readiness(): TaskReadiness {
    const pid = this.isAlive ? this.#pid : undefined;
    const { isReady: ready } = this;
    const phase = ready ? 'ready' : this.#phase;
    const cause = phase === 'building-dataset' ? this.#preparations.cause : this.#cause;
    return readinessOf(this.#name, { ready, phase, since: this.#since, pid, cause });
  }

  /** From now on the task is in this phase, because of `cause`. */
  enter(phase: TaskPhase, cause?: unknown): void {
    this.#phase = phase;
    this.#cause = cause ?? this.#cause;
    this.#since = new Date();
    this.#host.changed();
  }

  post(message: ToWorker): void {
    try {
      this.#channel?.post(message);
    } catch {
      // The worker is ending; `onGone` follows.
    }
  }

  #forget(id: number): SentToWorker | undefined {
    const sent = this.#sent.remove(id);
    if (sent === undefined) return undefined;
    this.#claims?.release(sent.claim);
    if (this.#sent.size === 0) {
      this.#hasSuspect = false;
      this.idleSince = performance.now();
    }
    this.#graceTimers.clear(id);
    this.#runTimers.clear(id);
    return sent;
  }

  #receive(message: FromWorker): void {
    switch (message.kind) {
      case 'allstop:announcing':
        this.#announced = message;
        return;
      case 'allstop:results':
        this.#announced = undefined;
        for (const result of message.results) this.#takeResult(result);
        if (this.#ended >= this.#mostTasks) this.retire(recycled());
        updateBusyWorkers(attachmentOf(this.#host.coordinator));
        this.#endIfRetired();
        return this.#free();
      case 'allstop:pong':
        this.#silence.end();
        this.idleSince = performance.now();
        return this.#free();
      case 'allstop:progress': {
        const sent = this.#sent.get(message);
        if (sent !== undefined) this.#host.progressed(sent.closure, message.values);
        return;
      }
      case 'allstop:begun': {
        const closure = this.#sent.get(message)?.closure;
        if (closure === undefined) return;
        const { id, runTimeoutMs = Number.POSITIVE_INFINITY } = closure;
        this.#runTimers.start(id, runTimeoutMs, () => this.#host.overdue(closure));
        return;
      }
      case 'allstop:ready':
        this.isLoaded = true;
        this.hasFailedSetup = false;
        this.#cause = undefined;
        this.#listener.onLoaded(this, message.functions);
        this.#host.prepare(this.index);
        this.#listener.onFree(this); // sends the resources to make before it is ready
        return this.#checkReady();
      case 'allstop:failed': {
        const { value } = decode(message.error);
        this.enter('import-failed', whyNotImported(this.#options.module, value));
        return this.#listener.onImportFailed(this, value, message.isWhole);
      }
      case 'allstop:settingUp':
        return this.enter(
          'setting-up',
          this.hasFailedSetup ? undefined : settingUp(this.#options.setup ?? ''),
        );
      case 'allstop:setupFailed': {
        const { value } = decode(message.error);
        const error = setupError(this.#name, this.#options.setup, value);
        this.hasFailedSetup = true;
        this.enter('setup-failed', error);
        return this.startHasFailed(error);
      }
      case 'allstop:heapFull':
        return this.retire(recycled());
      case 'allstop:ending':
        this.#ending?.tornDown(message.error);
        if (this.#channel?.isShared === true) this.kill(this.#retiredFor as Error);
        return; // a process exits
      case 'allstop:leaving':
        return this.retire(new CancelledError('The worker was asked to end, by SIGTERM'));
      case 'allstop:prepared':
        this.#preparations.made(message.id);
        this.#checkReady();
        return this.#free();
      case 'allstop:stop':
        return this.#listener.onStop(message.stop);
      case 'allstop:draw': {
        const { id, request } = message;
        const reply = this.#replier();
        this.#host.draw?.(request, (state, bytes) => reply({ kind: 'drawn', id, state, bytes }));
        return;
      }
      case 'allstop:operate': {
        const { id, request } = message;
        const reply = this.#replier();
        this.#host.variables.answer(request, (answer) => reply({ kind: 'answer', id, answer }));
        return;
      }
      case 'allstop:output':
      case 'allstop:dying': // heard by the channel
    }
  }

  #free(): void {
    if (this.#sent.size > 0) this.#silence.watch();
    this.#listener.onFree(this);
  }

  /** Posts to the present worker: later another may have the slot, with requests of its own. */
  #replier(): (message: ToWorker) => void {
    const channel = this.#channel;
    return (message) => this.#channel === channel && this.post(message);
  }

  #checkReady(): void {
    if (!this.#preparations.areOver || this.isEnding) return;
    this.enter('ready');
    this.idleSince = performance.now();
    this.#listener.onReady(this);
  }

  #takeResult([id, state, value, us]: SentResult): void {
    const sent = this.#forget(id);
    if (sent === undefined) return;
    const { closure } = sent;
    this.completed += 1;
    this.#ended += 1;
    const { name } = closure.work as Call;
    this.#last = { name, at: Date.now() };
    this.#listener.onResult(this, name, us);
    const isValue = this.#channel?.isShared !== false;
    this.#host.ended(closure, outcomeOf(state, value, isValue), us);
  }

  #onUnreadable(error: unknown): boolean {
    if (this.#announced === undefined) return false;
    const { id, us } = this.#announced;
    this.#receive({
      kind: 'allstop:results',
      results: [[id, STATE.failed, unreadable(error), us]],
    });
    return true;
  }

  #onGone(channel: WorkerChannel, cause: Error): void {
    const stuck = this.stuck.findIndex((each) => each.channel === channel);
    if (stuck !== -1) {
      this.stuck.splice(stuck, 1); // the thread has returned from native code and ended
      this.#shown.delete(channel);
      updateBusyWorkers(attachmentOf(this.#host.coordinator));
      this.#host.changed();
    }
    if (this.#channel !== channel) return;
    this.#lose(this.#killedFor ?? cause);
  }

  #abandon(channel: WorkerChannel): void {
    const cause = this.#killedFor;
    if (this.#channel !== channel || cause === undefined) return;
    const info: WorkerInfo = { ...this.info, state: 'stuck', running: 0 };
    this.stuck.push({ info, channel });
    this.#shown.set(channel, stuckWorker(this.#name, channel, info.calls));
    this.#listener.onStuck(info);
    this.#lose(cause);
  }

  /** Returns all closures of the lost worker. */
  #lose(cause: Error): void {
    const failed = this.#startFailure === undefined ? undefined : this.#phase;
    const wasKilled = this.#killedFor !== undefined && failed === undefined;
    const wasRetired = this.#retiredFor !== undefined && this.#sent.size === 0;
    const wasReady = this.isLoaded && this.#preparations.areOver;
    const made = this.#preparations.lost(cause, this.isEnding);
    const lost = inOrderOfReturn(this.#sent, (sent) => this.#fateAfterDeath(sent));
    this.#channel = undefined;
    this.#shown.delete(this);
    this.isLoaded = false;
    this.#ending?.clear();
    this.#ending = undefined;
    this.#batch.clear();
    this.enter(failed ?? 'lost', wasRetired ? undefined : cause);
    this.#graceTimers.clearAll();
    this.#runTimers.clearAll();
    this.#silence.end();
    // All closures are removed before any is returned: if one fails, the rules cancel the others,
    // and must not find them here.
    this.#sent.takeAll();
    updateBusyWorkers(attachmentOf(this.#host.coordinator));
    this.#hasSuspect = false;
    for (const { closure, fate } of lost) this.#host.returned(closure, fate, cause);
    const running = lost.find(({ fate }) => fate === 'running');
    const name = (running?.closure.work as Call | undefined)?.name ?? made;
    this.#listener.onGone(this, { cause, wasKilled, wasRetired, wasReady, running: name });
  }
}
