/**
 * The coordinator's side of a cluster on many machines: which nodes there are, and who gets
 * which closure.
 *
 * 1. The coordinator has every closure that is not settled. What the server or a node loses
 *    is sent again from here; so nothing that is kept in the server has to be trusted.
 * 2. A node has a closure through one session, and a session has one node. When a session is
 *    over, nothing of it is heard any more, and what was sent through it is `lost`.
 * 3. A session is over when its node says so, when nobody listens at the node's subject for
 *    ABSENT_MS, or when it has not answered MAX_MISSED probes in a row; only while we are
 *    connected ourselves.
 * 4. Nothing is sent before the cluster is ours (fence.ts), and nothing after it is
 *    another's.
 */

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { debuglog } from 'node:util';
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { FailedPreconditionError, UnavailableError } from '../../errors.ts';
import { messageOf } from '../../thrown-value.ts';
import { Timer } from '../../timer.ts';
import type { Closure } from '../closure.ts';
import { applyStop, type StopMessage, stopMessage } from '../local/stop-relay.ts';
import type {
  Cancellation,
  Engine,
  ReadinessReport,
  StrategyHost,
  WorkerInfo,
} from '../strategy.ts';
import { AddressChecks } from './address-checks.ts';
import { admit } from './admission.ts';
import { Connection } from './connection.ts';
import { type Explanation, explainFailure } from './connection-failure.ts';
import type { NatsConnectionOptions } from './connection-options.ts';
import { definitionOf } from './definition.ts';
import { Dispatcher } from './dispatcher.ts';
import { type Task, Tasks, UNREGISTERED } from './expected.ts';
import { Fence } from './fence.ts';
import type { NatsStrategy } from './nats-strategy.ts';
import type { Unfit } from './requirements.ts';
import { Session } from './session.ts';
import { Subjects } from './subjects.ts';
import { TurnedAwayNodes } from './turned-away.ts';
import {
  type CoordinatorReport,
  json,
  type NodeInfo,
  type NodeStatus,
  packStop,
  parseControl,
  parseProbeAnswer,
  unpackStop,
} from './wire.ts';

const log = debuglog('allstop');

const PROBE_MS = 100;
/** Of a node that has nothing to do. */
const IDLE_PROBE_MS = 1_000;
const PROBE_TIMEOUT_MS = 1_000;
const MAX_MISSED = 3;
const ABSENT_MS = 500;
/** As long after our own connection is back others may still be on their way. */
const REJOIN_MS = 3_000;
const HOLD_RETRY_MS = 1_000;
/** A node has so long to say that something has ended when its time is over. */
const UNHEARD_MS = 2_000;
const MAX_FRAME_BYTES = 256 * 1024;
/** A report is a message, which the server limits. */
const MAX_TOLD_TASKS = 1_000;
/** The phase of a task whose node has missed a probe. */
const SILENT = 'silent';
const END_IT = 'look at that process; end it, and start the worker again';

export class NatsEngine implements Engine {
  readonly #host: StrategyHost;
  readonly #strategy: NatsStrategy;
  readonly #subjects: Subjects;
  readonly #run = randomUUID();
  readonly #fence: Fence;
  readonly #tasks: Tasks;
  readonly #sessions = new Map<string, Session>();
  readonly #dispatcher: Dispatcher;
  readonly #byNode = new Map<string, Session>();
  readonly #connection: Connection;
  #subscribed: NatsConnection | undefined;
  readonly #subscriptions: Subscription[] = [];
  #upSince = 0;
  #phase = 'connecting';
  #trouble: { cause?: string; remedy?: string } = {};
  /** The server does not permit what we need. */
  #forbidden: Explanation | undefined;
  readonly #addressChecks: AddressChecks;
  readonly #turnedAway = new TurnedAwayNodes();
  #unavailable: Timer | undefined;
  #holdRetry: Timer | undefined;
  #isHolding = false;
  #probing: Timer | undefined;
  #cancelled: Timer | undefined;
  #definition: string | undefined;
  #functions: readonly string[] | undefined;
  #isOver = false;
  #isStopTold = false;
  #dropped = 0;
  #nodesLost = 0;
  #connections = 0;

  constructor(host: StrategyHost, strategy: NatsStrategy, options: NatsConnectionOptions) {
    this.#host = host;
    this.#strategy = strategy;
    this.#dispatcher = new Dispatcher(host);
    this.#subjects = new Subjects(strategy.cluster);
    const since = new Date().toISOString();
    const own = { run: this.#run, host: hostname(), pid: process.pid, since };
    this.#fence = new Fence(strategy.cluster, strategy.replicas, own);
    this.#tasks = new Tasks(strategy.expect, strategy.minWorkers);
    this.#addressChecks = new AddressChecks(
      () => this.#tasks.all.filter(({ phase }) => phase === UNREGISTERED),
      () => host.changed(),
    );
    this.#awaitConnection();
    const name = `allstop ${strategy.cluster}`;
    const inboxPrefix = this.#subjects.inbox('coordinator');
    this.#connection = new Connection(name, inboxPrefix, options, {
      onUp: (nats) => this.#onUp(nats),
      onDown: (cause) => this.#onDown(cause),
      onRefused: (error) => this.#onRefused(error),
    });
    host.coordinator.signal.addEventListener('abort', () => this.#onOwnStop());
    void this.#define();
  }

  get functions(): readonly string[] | undefined {
    return this.#functions;
  }

  get indexes(): number[] {
    return this.#tasks.all
      .filter(({ job, session }) => job === 'worker' && session !== undefined)
      .map(({ index }) => index);
  }

  get workers(): WorkerInfo[] {
    return this.#tasks.all
      .filter(({ host }) => host !== undefined)
      .map((task) => {
        const { session } = task;
        return {
          job: task.job,
          task: task.index,
          state: stateOf(task),
          host: task.host ?? '',
          pid: task.pid ?? 0,
          running: session?.running ?? 0,
          completed: task.completed + (session?.completed ?? 0),
          restarts: task.restarts + (session?.status.restarts ?? 0),
        };
      });
  }

  report(): ReadinessReport {
    const tasks = this.#tasks.all.map(({ readiness }) => readiness);
    if (this.#forbidden !== undefined && !this.#isOver) {
      return { ready: false, engine: { phase: 'forbidden', ...this.#forbidden }, tasks };
    }
    const ready = this.#phase === 'ready' && this.#tasks.areReady;
    return { ready, engine: { phase: this.#phase, ...this.#trouble }, tasks };
  }

  stats(): Record<string, number> {
    const { all } = this.#tasks;
    return {
      restarts: this.workers.reduce((sum, { restarts }) => sum + restarts, 0),
      nodes: all.filter(({ session }) => session !== undefined).length,
      nodesLost: this.#nodesLost,
      connections: this.#connections,
      malformedMessages: this.#dropped,
    };
  }

  /** The connection keeps the program alive until the cluster is closed. */
  setNeeded(): void {}

  wake(): void {
    this.#dispatcher.wake();
  }

  cancel(closure: Closure, cancellation: Cancellation): void {
    for (const session of this.#sessions.values()) {
      if (!session.has(closure)) continue;
      session.cancel(closure, cancellation);
      if (cancellation.replace) this.#watchCancelled();
      return;
    }
  }

  /**
   * A node makes what was cancelled end. One that cannot be reached, because we are not
   * connected, is not waited for any longer than one that can.
   */
  #watchCancelled(inMs = this.#host.cancelGraceMs + UNHEARD_MS): void {
    this.#cancelled ??= new Timer(inMs, () => {
      this.#cancelled = undefined;
      const since = performance.now() - this.#host.cancelGraceMs - UNHEARD_MS;
      let isMore = false;
      for (const session of this.#sessions.values()) {
        const { toldAt } = session;
        if (toldAt === undefined) continue;
        if (toldAt <= since && this.#connection.nats === undefined) {
          this.#lose(session, 'cannot be reached');
        } else isMore = true;
      }
      if (isMore) this.#watchCancelled(UNHEARD_MS);
    });
  }

  async close(): Promise<void> {
    this.#isOver = true;
    this.#clearTimers();
    const sessions = [...this.#sessions.values()];
    for (const session of sessions) session.post(['end']);
    if (this.#connection.nats !== undefined) await this.#inTime(sessions);
    for (const session of sessions) session.close();
    for (const task of this.#tasks.all) {
      task.session = undefined;
      task.enter('closed');
    }
    await this.#connection.close();
  }

  /** Until the nodes have it that all is over; one that is silent is not waited for. */
  async #inTime(sessions: Session[]): Promise<void> {
    let timer: Timer | undefined;
    const tooLate = new Promise<void>((resolve) => {
      timer = new Timer(1_000, resolve);
    });
    await Promise.race([tooLate, Promise.all(sessions.map(({ link }) => link.drained()))]);
    timer?.clear();
  }

  #clearTimers(): void {
    this.#unavailable?.clear();
    this.#holdRetry?.clear();
    this.#cancelled?.clear();
    this.#probing?.clear();
    this.#probing = undefined;
    this.#addressChecks.close();
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#clearTimers();
    this.#enter('failed', { cause: error.message });
    this.#host.failed(error);
    for (const session of this.#sessions.values()) session.post(['end']);
  }

  #enter(phase: string, trouble: { cause?: string; remedy?: string } = {}): void {
    const isKnown = phase === this.#phase && trouble.cause === this.#trouble.cause;
    if (isKnown && phase === 'connecting') return; // tried again, and no better
    this.#phase = phase;
    this.#trouble = trouble;
    this.#dispatcher.isOpen = phase === 'ready';
    this.#host.changed();
  }

  // ---------------------------------------------------------------- the servers

  #awaitConnection(): void {
    const { unavailableAfterMs } = this.#strategy;
    this.#unavailable ??= new Timer(unavailableAfterMs, () => {
      const why = this.#trouble.cause === undefined ? '' : `: ${this.#trouble.cause}`;
      this.#fail(
        new UnavailableError(
          `The NATS servers were not available for ${unavailableAfterMs} ms${why}`,
        ),
      );
    });
  }

  #onUp(nats: NatsConnection): void {
    if (this.#isOver) return;
    this.#upSince = performance.now();
    this.#connections += 1;
    this.#forbidden = undefined;
    if (this.#subscribed !== nats) {
      this.#subscribed = nats;
      this.#subscribe(nats);
    }
    // Who has it keeps it until the bucket says otherwise, which may be away for a while.
    if (this.#fence.token === undefined) this.#enter('jetstream');
    else this.#onHeld(this.#fence.token);
    void this.#hold(nats);
  }

  #onDown(cause: unknown): void {
    if (this.#isOver) return;
    this.#probing?.clear();
    this.#probing = undefined;
    this.#holdRetry?.clear();
    this.#addressChecks.stop();
    this.#awaitConnection();
    if (cause instanceof UnavailableError) this.#fail(cause);
    else this.#enter('connecting', explainFailure(cause));
  }

  /** Whatever it is that is not permitted, the cluster needs it. */
  #onRefused(error: Error): void {
    log('%s: the server refuses: %s', this.#strategy.cluster, error.message);
    if (error.name !== 'PermissionViolationError') return;
    this.#forbidden = explainFailure(error);
    this.#host.changed();
  }

  #subscribe(nats: NatsConnection): void {
    const { hello, up, stop, report, who } = this.#subjects;
    const listen = (subject: string, onMessage: (message: Msg) => void): void => {
      const callback = (error: Error | null, message: Msg): void => {
        if (error === null) onMessage(message);
        else log('%s: %s', this.#strategy.cluster, error.message);
      };
      this.#subscriptions.push(nats.subscribe(subject, { callback }));
    };
    this.#subscriptions.length = 0;
    listen(hello, ({ data }) => this.#onHello(data));
    listen(up.call(this.#subjects, '*'), ({ subject, data }) => this.#onFrame(subject, data));
    listen(stop.call(this.#subjects, this.#run), ({ data }) => this.#onStopBroadcast(data));
    listen(who, ({ data }) => this.#onWho(data));
    listen(report, (message) => {
      const longest = nats.info?.max_payload ?? MAX_FRAME_BYTES;
      let bytes = json(this.#tell(MAX_TOLD_TASKS));
      for (let count = MAX_TOLD_TASKS; bytes.byteLength > longest && count > 0; ) {
        count = Math.floor(count / 2);
        bytes = json(this.#tell(count));
      }
      message.respond(bytes);
    });
  }

  /** For a doctor: who blocks comes first. */
  #tell(count: number): CoordinatorReport {
    const { tasks, ...rest } = this.report();
    const ordered = [...tasks.filter(({ ready }) => !ready), ...tasks.filter(({ ready }) => ready)];
    const told = ordered.slice(0, count);
    return {
      run: this.#run,
      report: { ...rest, tasks: told },
      leftOff: tasks.length - told.length,
      turnedAway: this.#turnedAway.all,
      dropped: this.#dropped,
    };
  }

  /** Another coordinator. */
  #onWho(data: Uint8Array): void {
    const who = parseControl(data, 'who');
    if (who === undefined) this.#drop('a who');
    else if (who.run !== this.#run) this.#onToken(who.token);
  }

  /** Somebody says that there is a newer run. Only the fence knows. */
  #onToken(token: number): void {
    const { nats } = this.#connection;
    if (nats === undefined || this.#fence.token === undefined || token <= this.#fence.token) return;
    void this.#hold(nats);
  }

  /** Makes sure that the cluster is ours; again whenever the connection is back. */
  async #hold(nats: NatsConnection): Promise<void> {
    if (this.#isHolding) return;
    this.#isHolding = true;
    try {
      const token = await this.#fence.hold(nats);
      if (this.#isOver) return;
      if (this.#connection.nats === nats && this.#phase !== 'ready') this.#onHeld(token);
    } catch (error) {
      if (this.#isOver) return;
      if (error instanceof FailedPreconditionError || error instanceof UnavailableError) {
        this.#fail(error);
        return;
      }
      if (this.#connection.nats === nats) {
        if (this.#phase !== 'ready') this.#enter('jetstream', explainFailure(error));
        this.#holdRetry?.clear();
        this.#holdRetry = new Timer(HOLD_RETRY_MS, () => {
          if (this.#connection.nats === nats) void this.#hold(nats);
        });
      }
    } finally {
      this.#isHolding = false;
      // Another connection has come meanwhile.
      const { nats: now } = this.#connection;
      if (now !== undefined && now !== nats && !this.#isOver) void this.#hold(now);
    }
  }

  #onHeld(token: number): void {
    this.#unavailable?.clear();
    this.#unavailable = undefined;
    this.#enter('ready');
    this.#publish(this.#subjects.who, json({ kind: 'who', run: this.#run, token }));
    for (const session of this.#sessions.values()) {
      session.missed = 0;
      session.absentSince = undefined;
      session.link.resume();
    }
    this.#probe();
    this.#addressChecks.start();
    this.wake();
  }

  #publish(subject: string, payload: Uint8Array): boolean {
    return this.#connection.publish(subject, payload);
  }

  // ---------------------------------------------------------------- the nodes

  async #define(): Promise<void> {
    this.#definition = await definitionOf(this.#strategy.module);
  }

  #onHello(data: Uint8Array): void {
    const { token } = this.#fence;
    if (this.#isOver || token === undefined || this.#definition === undefined) return;
    const hello = parseControl(data, 'hello');
    if (hello === undefined) {
      this.#drop('a hello');
      return;
    }
    const { info } = hello;
    const known = this.#byNode.get(info.node);
    if (known !== undefined) {
      if (info.session === known.id) {
        known.link.resume();
        return;
      }
      if (!known.isConfirmed) {
        this.#welcome(known, token);
        return;
      }
      this.#lose(known, 'has left its session');
    }
    const { task, refusal } = admit(info, this.#tasks, this.#definition);
    if (refusal !== undefined) {
      this.#refuse(info, token, refusal, task);
      return;
    }
    this.#turnedAway.forget(info.node);
    this.#begin(task, info, token);
  }

  #begin(task: Task, info: NodeInfo, token: number): void {
    const id = randomUUID();
    const subject = this.#subjects.down(id);
    const maxPayload = this.#connection.nats?.info?.max_payload ?? MAX_FRAME_BYTES;
    const session = new Session(
      id,
      info,
      task.index,
      this.#host,
      {
        maxFrameBytes: Math.min(MAX_FRAME_BYTES, maxPayload),
        send: (frame) => this.#publish(subject, frame),
      },
      {
        onStatus: (from, status) => this.#onStatus(task, from, status),
        onFree: (from) => {
          this.#letGo(from);
          this.#dispatcher.freed(from);
        },
        onResult: (name, us) => this.#dispatcher.measure(name, us),
        onStop: (_, stop) => this.#onNodeStop(stop),
        onFailed: (from, error) => this.#onNodeFailed(task, from, error),
        onMalformed: (from) => {
          this.#drop('a message');
          // It was in the place of another, which is lost.
          this.#lose(from, 'has sent what is no message');
        },
      },
    );
    task.session = session;
    task.host = info.host;
    task.pid = info.pid;
    task.enter('connecting');
    this.#sessions.set(id, session);
    this.#byNode.set(info.node, session);
    log(
      '%s: %s:%d is %s (pid %d)',
      this.#strategy.cluster,
      task.job,
      task.index,
      info.host,
      info.pid,
    );
    this.#welcome(session, token);
    const stop = stopMessage(this.#host.coordinator);
    if (stop !== undefined) session.post(['stopped', withHost(stop)]);
    else if (info.job === 'worker') {
      this.#host.prepare(task.index);
      this.#dispatcher.add(session);
    }
    this.#host.changed();
  }

  /** Again, if it was lost; what follows it is the link's. */
  #welcome(session: Session, token: number): void {
    const { cancelGraceMs } = this.#host;
    const welcome = {
      kind: 'welcome',
      run: this.#run,
      token,
      session: session.id,
      task: session.task,
      cancelGraceMs,
    };
    this.#publish(this.#subjects.node(session.info.node), json(welcome));
  }

  #refuse(info: NodeInfo, token: number, refusal: Unfit, task?: Task): void {
    const { phase, cause, remedy } = refusal;
    this.#turnedAway.note(info, refusal, task);
    if (task !== undefined) {
      task.host = info.host;
      task.pid = info.pid;
      if (task.enter(phase, cause, remedy)) this.#host.changed();
    }
    const refused = { kind: 'refused', run: this.#run, token, phase, why: `${cause}: ${remedy}` };
    this.#publish(this.#subjects.node(info.node), json(refused));
  }

  #onFrame(subject: string, data: Uint8Array): void {
    const session = this.#sessions.get(subject.slice(subject.lastIndexOf('.') + 1));
    if (session === undefined) return; // it is over
    this.#onHeard(session);
    if (!session.link.receive(data)) this.#drop('a frame');
  }

  /** A sign of life. */
  #onHeard(session: Session): void {
    const wasMissed = session.missed > 0;
    session.heard();
    if (!wasMissed) return;
    const task = this.#taskOf(session);
    if (task.phase === SILENT) this.#onStatus(task, session, session.status);
  }

  #taskOf(session: Session): Task {
    return this.#tasks.all.find((each) => each.session === session) as Task;
  }

  #onStatus(task: Task, session: Session, { phase, cause, functions }: NodeStatus): void {
    if (task.session !== session) return;
    if (functions !== undefined) this.#functions ??= functions;
    const remedy =
      cause === undefined ? undefined : 'see the cause, and the output of the worker there';
    if (!session.isConfirmed) task.enter('connecting');
    else task.enter(session.isLeaving ? 'leaving' : phase, cause, remedy);
    this.#host.changed();
    this.#letGo(session);
    this.#dispatcher.changed(session);
  }

  /** It has asked to go, and has done what it had to do. */
  #letGo(session: Session): void {
    if (!session.isLeaving || session.running > 0 || session.isLetGo) return;
    session.isLetGo = true;
    session.post(['end']);
    void session.link.drained().then(() => this.#lose(session, 'has left'));
  }

  #onNodeFailed(task: Task, session: Session, error: unknown): void {
    if (task.session !== session) return;
    session.status = { ...session.status, capacity: 0 };
    const phase = task.phase === 'import-failed' ? task.phase : 'failed';
    task.enter(phase, messageOf(error), 'correct it, and start the worker again');
    this.#lose(session, 'has failed', error);
    const isHopeless = this.#tasks.all.every(
      (each) => each.job !== 'worker' || each.session === undefined,
    );
    if (isHopeless && error instanceof Error) this.#fail(error);
  }

  /** `how`: "has ended". */
  #lose(session: Session, how: string, cause?: unknown): void {
    if (!this.#sessions.delete(session.id)) return;
    const { info, task: index } = session;
    this.#byNode.delete(info.node);
    this.#nodesLost += 1;
    this.#dispatcher.remove(session);
    const task = this.#taskOf(session);
    const name = `${info.job}:${index}`;
    const error = new UnavailableError(
      `Worker ${name} (${info.host}, pid ${info.pid}) ${how}`,
      cause === undefined ? {} : { cause },
    );
    const wasReady = session.status.phase === 'ready' || session.isLeaving;
    task.session = undefined;
    task.completed += session.completed;
    task.restarts += session.status.restarts + 1;
    if (cause === undefined) {
      task.enter('lost', error.message, task.phase === SILENT ? END_IT : 'start the worker again');
    }
    // It may be alive, and is to know.
    this.#publish(this.#subjects.down(session.id), Buffer.alloc(0));
    log('%s: %s', this.#strategy.cluster, error.message);
    session.lose(error);
    this.#host.changed();
    if (info.job === 'ps' && wasReady) {
      this.#fail(new UnavailableError(`The parameter server ${name} is lost`, { cause: error }));
    }
    this.wake();
  }

  /** Asks every node whether it is there; those that have something to do more often. */
  #probe(): void {
    if (this.#probing !== undefined || this.#isOver) return;
    this.#probing = new Timer(PROBE_MS, () => {
      this.#probing = undefined;
      const { nats } = this.#connection;
      if (nats === undefined) return;
      if (this.#turnedAway.expire()) this.#host.changed();
      const now = performance.now();
      for (const session of this.#sessions.values()) {
        const isUrgent = session.running > 0 || session.absentSince !== undefined;
        const every = isUrgent ? PROBE_MS : IDLE_PROBE_MS;
        if (session.isProbed || now - session.probedAt < every) continue;
        session.probedAt = now;
        void this.#probeOne(nats, session);
      }
      this.#probe();
    });
  }

  async #probeOne(nats: NatsConnection, session: Session): Promise<void> {
    const { node } = session.info;
    const probe = { kind: 'probe', run: this.#run, token: this.#fence.token, session: session.id };
    session.isProbed = true;
    try {
      const answer = await nats.request(this.#subjects.node(node), json(probe), {
        timeout: PROBE_TIMEOUT_MS,
      });
      this.#onProbeAnswer(session, answer.data);
    } catch (error) {
      const isDoubtful = !isNoResponders(error) && session.missed + 1 >= MAX_MISSED;
      // It may be the server that is silent: then nobody is lost, and we are soon disconnected.
      if (isDoubtful && !(await answers(nats))) return;
      if (this.#isOver || this.#connection.nats !== nats) return;
      this.#onNoAnswer(session, error);
    } finally {
      session.isProbed = false;
    }
  }

  #onProbeAnswer(session: Session, data: Uint8Array): void {
    if (this.#isOver || !this.#sessions.has(session.id)) return;
    const answer = parseProbeAnswer(data);
    if (answer === undefined) {
      this.#drop('an answer');
      return;
    }
    this.#onHeard(session);
    this.#onToken(answer.token);
    if (session.isConfirmed && answer.session !== session.id) {
      this.#lose(session, 'has left its session');
    }
  }

  #onNoAnswer(session: Session, error: unknown): void {
    if (!this.#sessions.has(session.id)) return;
    const now = performance.now();
    if (isNoResponders(error)) {
      session.absentSince ??= now;
      const mayRejoin = session.heardAt < this.#upSince && now - this.#upSince < REJOIN_MS;
      if (!mayRejoin && now - session.absentSince >= ABSENT_MS) this.#lose(session, 'is gone');
      return;
    }
    session.missed += 1;
    if (session.missed >= MAX_MISSED) {
      this.#lose(session, 'does not answer: it hangs, is stopped, or its network is cut');
      return;
    }
    const { host, pid } = session.info;
    const cause = `${host} (pid ${pid}) has not answered for ${session.missed * PROBE_TIMEOUT_MS} ms: it hangs, is stopped, or its network is cut`;
    if (this.#taskOf(session).enter(SILENT, cause, END_IT)) this.#host.changed();
  }

  // ---------------------------------------------------------------- stops

  /** Ours: nodes hear of it by the broadcast, and for certain through their sessions. */
  #onOwnStop(): void {
    if (this.#isOver) return;
    const stop = withHost(stopMessage(this.#host.coordinator) as StopMessage);
    if (!this.#isStopTold) {
      this.#publish(this.#subjects.stop(this.#run), packStop(stop));
      this.#connection.flush();
    }
    for (const session of this.#sessions.values()) session.post(['stopped', stop]);
  }

  /** A node has stopped the run. The first that we hear of is the record. */
  #onNodeStop(stop: StopMessage): void {
    const { pid, host } = stop.requester;
    if (this.#host.coordinator.shouldStop()) {
      const known = stopMessage(this.#host.coordinator)?.requester;
      // It may have come before, by the broadcast.
      const isKnown = known?.pid === pid && (known?.host ?? hostname()) === (host ?? hostname());
      if (!isKnown && stop.error !== null) applyStop(this.#host.coordinator, stop);
      return;
    }
    this.#isStopTold = true;
    applyStop(this.#host.coordinator, stop);
  }

  #onStopBroadcast(data: Uint8Array): void {
    const stop = unpackStop(data);
    if (stop === undefined) this.#drop('a stop');
    else if (!this.#host.coordinator.shouldStop()) this.#onNodeStop(stop);
  }

  /** What nobody of ours can have sent. */
  #drop(what: string): void {
    this.#dropped += 1;
    if (this.#dropped > 1) return;
    process.emitWarning(
      `The cluster '${this.#strategy.cluster}' has received ${what} that is malformed, and ` +
        'dropped it, as it will others without a word: `allstop doctor` tells how many',
      { code: 'ALLSTOP_MALFORMED_MESSAGE' },
    );
  }
}

function stateOf({ session, phase }: Task): WorkerInfo['state'] {
  if (session === undefined) return 'lost';
  if (phase !== 'ready' && phase !== 'leaving' && phase !== SILENT) return 'starting';
  return session.running > 0 ? 'busy' : 'idle';
}

function withHost(stop: StopMessage): StopMessage {
  const { requester } = stop;
  return { ...stop, requester: { ...requester, host: requester.host ?? hostname() } };
}

/** Whether the server does, in time. */
async function answers(nats: NatsConnection): Promise<boolean> {
  let timer: Timer | undefined;
  const tooLate = new Promise<boolean>((resolve) => {
    timer = new Timer(PROBE_TIMEOUT_MS, () => resolve(false));
  });
  const flushed = nats.flush().then(
    () => true,
    () => false,
  );
  const isThere = await Promise.race([flushed, tooLate]);
  timer?.clear();
  return isThere;
}

function isNoResponders(error: unknown): boolean {
  const { cause, name } = (error ?? {}) as { cause?: { name?: unknown }; name?: unknown };
  return name === 'NoResponders' || cause?.name === 'NoResponders';
}
