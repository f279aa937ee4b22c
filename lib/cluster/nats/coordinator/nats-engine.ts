/**
 * The coordinator's side of a cluster on many machines: which nodes there are, and who gets
 * which closure.
 *
 * 1. The coordinator has every closure that is not settled. What the server or a node loses
 *    is sent again from here; so nothing that is kept in the server has to be trusted.
 * 2. A node has a closure through one session, and a session has one node. When a session is
 *    over, nothing of it is heard any more, and what was sent through it is `lost`.
 * 3. A session is over when its node says so, or when probes say so (probes.ts).
 * 4. Nothing is sent before the cluster is ours (tenure.ts), and nothing after it is known to
 *    be another's.
 */

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { debuglog } from 'node:util';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { messageOf } from '../../../base/thrown-value.ts';
import { Timer } from '../../../base/timer.ts';
import { UnavailableError } from '../../../errors/errors.ts';
import type { ReadinessReport } from '../../../errors/readiness-report.ts';
import type { Closure } from '../../closures/closure.ts';
import type { Cancellation, Engine, StrategyHost, WorkerInfo } from '../../closures/strategy.ts';
import type { ClusterSpec } from '../../cluster-spec.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import {
  type CoordinatorReport,
  json,
  type NodeInfo,
  type ProbeReply,
  parseControl,
} from '../wire/control-messages.ts';
import { moduleFingerprint, specFingerprint } from '../wire/fingerprints.ts';
import { frameBytes } from '../wire/reliable-channel.ts';
import { type NodeStatus, packStop, unpackStop } from '../wire/session-messages.ts';
import { Subjects } from '../wire/subjects.ts';
import { subscriptionCallback } from '../wire/subscription.ts';
import { AddressChecks } from './address-checks.ts';
import { admit } from './admission.ts';
import { Dispatcher } from './dispatcher.ts';
import { Fence } from './fence.ts';
import { Leadership } from './leadership.ts';
import { Probes } from './probes.ts';
import type { Fingerprints, Refusal } from './requirements.ts';
import { Session } from './session.ts';
import { StopArbiter } from './stop-arbiter.ts';
import { type ClusterTask, ClusterTasks, SILENT, UNREGISTERED } from './tasks.ts';
import { RefusedNodes } from './turned-away.ts';

const log = debuglog('allstop');

/** A node has so long to say that something has ended when its time is over. */
const UNHEARD_MS = 2_000;
/** Tasks, and nodes turned away. A report is a message, which the server limits. */
const MAX_TOLD = 1_000;
const END_IT = 'look at that process; end it, and start the worker again';
const START_AGAIN = 'start the worker again';

/** Which cluster it is, and what it is to have. */
export type NatsSettings = {
  readonly module: URL;
  readonly cluster: string;
  readonly expect: ClusterSpec | undefined;
  readonly minWorkers: number | undefined;
  readonly unavailableAfterMs: number;
  readonly replicas: number;
};

export class NatsEngine implements Engine {
  readonly #host: StrategyHost;
  readonly #settings: NatsSettings;
  readonly #subjects: Subjects;
  readonly #run = randomUUID();
  readonly #tasks: ClusterTasks;
  readonly #sessions = new Map<string, Session>();
  readonly #dispatcher: Dispatcher;
  readonly #byNode = new Map<string, Session>();
  readonly #leadership: Leadership;
  readonly #addressChecks: AddressChecks;
  readonly #turnedAway = new RefusedNodes();
  readonly #probes: Probes;
  readonly #stops: StopArbiter;
  #cancelled: Timer | undefined;
  #definitions: Fingerprints | undefined;
  #functions: readonly string[] | undefined;
  #isOver = false;
  #dropped = 0;
  #nodesLost = 0;
  /** So many nodes found that no worker lives there. */
  #failures = 0;

  constructor(host: StrategyHost, settings: NatsSettings, options: NatsConnectionOptions) {
    this.#host = host;
    this.#settings = settings;
    this.#dispatcher = new Dispatcher(host);
    this.#subjects = new Subjects(settings.cluster);
    const since = new Date().toISOString();
    const own = { run: this.#run, host: hostname(), pid: process.pid, since };
    const fence = new Fence(settings.cluster, settings.replicas, own);
    this.#tasks = new ClusterTasks(settings.expect, settings.minWorkers);
    this.#addressChecks = new AddressChecks(
      () => this.#tasks.all.filter(({ phase }) => phase === UNREGISTERED),
      () => host.changed(),
    );
    this.#probes = new Probes(this.#sessions, {
      questionFor: ({ id, info }) => ({
        subject: this.#subjects.node(info.node),
        probe: { kind: 'probe', run: this.#run, token: this.#leadership.token ?? 0, session: id },
      }),
      onAnswer: (session, answer) => this.#onProbeReply(session, answer),
      onMalformed: () => this.#drop('an answer'),
      onSilent: (session, forMs) => this.#onSilent(session, forMs),
      onLost: (session, how, mayLive) =>
        this.#lose(session, how, { remedy: mayLive ? END_IT : START_AGAIN }),
      onRound: () => {
        if (this.#turnedAway.expire()) this.#host.changed();
      },
    });
    const name = `allstop ${settings.cluster}`;
    const inboxPrefix = this.#subjects.inbox('coordinator');
    const connect = { name, inboxPrefix, options };
    this.#leadership = new Leadership(fence, settings.unavailableAfterMs, connect, {
      onConnection: (nats) => this.#subscribe(nats),
      onHeld: (nats) => this.#onHeld(nats),
      onDoubt: () => this.#sayWho(),
      onDown: () => {
        this.#probes.stop();
        this.#addressChecks.stop();
      },
      onLost: (error) => this.#fail(error),
      onRefused: ({ message }) => log('%s: the server refuses: %s', settings.cluster, message),
      onChange: () => {
        this.#dispatcher.isOpen = this.#leadership.state.phase === 'ready';
        host.changed();
      },
    });
    this.#stops = new StopArbiter(host.coordinator, {
      broadcast: (stop) => {
        if (this.#isOver) return;
        this.#publish(this.#subjects.stop(this.#run), packStop(stop));
        this.#leadership.flush();
      },
      announce: (stop) => {
        if (this.#isOver) return;
        for (const session of this.#sessions.values()) session.post(['stopped', stop]);
      },
    });
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
    return this.#tasks.workers;
  }

  report(): ReadinessReport {
    const tasks = this.#tasks.all.map(({ readiness }) => readiness);
    const { state } = this.#leadership;
    return { ready: state.phase === 'ready' && this.#tasks.areReady, engine: state, tasks };
  }

  stats(): Record<string, number> {
    const { all } = this.#tasks;
    return {
      restarts: this.workers.reduce((sum, { restarts }) => sum + restarts, 0),
      nodes: all.filter(({ session }) => session !== undefined).length,
      nodesLost: this.#nodesLost,
      connections: this.#leadership.connections,
      malformedMessages: this.#dropped,
    };
  }

  /** The connection keeps the program alive until the cluster is closed. */
  setNeeded(): void {}

  wake(): void {
    this.#dispatcher.wake();
  }

  cancel(closure: Closure, cancellation: Cancellation): void {
    this.#stops.afterBroadcast(() => this.#cancel(closure, cancellation));
  }

  #cancel(closure: Closure, cancellation: Cancellation): void {
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
        if (toldAt <= since && this.#leadership.nats === undefined) {
          this.#lose(session, 'cannot be reached');
        } else isMore = true;
      }
      if (isMore) this.#watchCancelled(UNHEARD_MS);
    });
  }

  async close(): Promise<void> {
    this.#stops.hurry();
    this.#isOver = true;
    this.#clearTimers();
    this.#dispatcher.isOpen = false;
    if (this.#leadership.state.phase !== 'failed') this.#leadership.end({ phase: 'closed' });
    const sessions = [...this.#sessions.values()];
    for (const session of sessions) session.post(['end']);
    if (this.#leadership.nats !== undefined) await this.#inTime(sessions);
    this.#sessions.clear(); // what comes of them from here on is nobody's loss
    for (const session of sessions) session.close();
    for (const task of this.#tasks.all) {
      const { session } = task;
      task.completed += session?.completed ?? 0;
      task.restarts += session?.status.restarts ?? 0;
      task.session = undefined;
      task.enter('closed');
    }
    await this.#leadership.close();
  }

  /** Until the nodes have it that all is over; one that is silent is not waited for. */
  async #inTime(sessions: Session[]): Promise<void> {
    let timer: Timer | undefined;
    const tooLate = new Promise<void>((resolve) => {
      timer = new Timer(1_000, resolve);
    });
    await Promise.race([tooLate, Promise.all(sessions.map(({ channel }) => channel.drained()))]);
    timer?.clear();
  }

  #clearTimers(): void {
    this.#cancelled?.clear();
    this.#probes.stop();
    this.#addressChecks.close();
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#stops.hurry();
    this.#isOver = true;
    this.#clearTimers();
    this.#leadership.end({ phase: 'failed', cause: error.message });
    this.#dispatcher.isOpen = false;
    this.#host.failed(error);
    this.#host.changed();
    for (const session of this.#sessions.values()) session.post(['end']);
  }

  // ---------------------------------------------------------------- the servers

  #subscribe(nats: NatsConnection): void {
    const subjects = this.#subjects;
    const listen = (subject: string, onMessage: (message: Msg) => void): void => {
      const callback = subscriptionCallback(onMessage, (error) => this.#drop('a message', error));
      nats.subscribe(subject, { callback });
    };
    listen(subjects.hello, ({ data }) => this.#onHello(data));
    listen(subjects.up('*'), ({ subject, data }) => this.#onFrame(subject, data));
    listen(subjects.stop(this.#run), ({ data }) => {
      const stop = unpackStop(data);
      if (stop === undefined) this.#drop('a stop');
      else this.#stops.heard(stop);
    });
    listen(subjects.who, (message) => this.#onWho(message));
    listen(subjects.report, (message) => {
      const longest = frameBytes(nats.info?.max_payload);
      let count = MAX_TOLD;
      let bytes = json(this.#tell(count));
      while (bytes.byteLength > longest && count > 0) {
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
      turnedAway: this.#turnedAway.all.slice(0, count),
      dropped: this.#dropped,
    };
  }

  /** Another coordinator. */
  #onWho({ data, reply }: Msg): void {
    const who = parseControl(data, 'who');
    if (who === undefined) this.#drop('a who');
    else if (who.run !== this.#run) {
      this.#leadership.doubt(who.token, true);
      // It may not know that there is a newer one; a doctor only asks.
      const isOlder = who.token < (this.#leadership.token ?? 0);
      if (isOlder && (reply ?? '') === '') this.#sayWho();
    }
  }

  /** Who has the cluster, as far as we know: to all. */
  #sayWho(): void {
    const { token, state } = this.#leadership;
    if (state.phase !== 'ready') return;
    this.#publish(this.#subjects.who, json({ kind: 'who', run: this.#run, token }));
  }

  #onHeld(nats: NatsConnection): void {
    this.#sayWho();
    for (const session of this.#sessions.values()) {
      // What was cut to its length would never get through.
      if (session.channel.fits(nats.info?.max_payload)) session.channel.resume();
      else this.#lose(session, 'had messages that are too long for the server now');
    }
    this.#probes.start(nats);
    this.#addressChecks.start();
    this.wake();
  }

  #publish(subject: string, payload: Uint8Array): boolean {
    return this.#leadership.publish(subject, payload);
  }

  // ---------------------------------------------------------------- the nodes

  async #define(): Promise<void> {
    const { module, expect } = this.#settings;
    this.#definitions = {
      module: await moduleFingerprint(module),
      spec: expect && specFingerprint(expect),
    };
  }

  #onHello(data: Uint8Array): void {
    const { token } = this.#leadership;
    if (this.#isOver || token === undefined || this.#definitions === undefined) return;
    const hello = parseControl(data, 'hello');
    if (hello === undefined) {
      this.#drop('a hello');
      return;
    }
    const { info } = hello;
    const known = this.#byNode.get(info.node);
    if (known !== undefined) {
      if (info.session === known.id) {
        known.channel.resume();
        return;
      }
      if (!known.isConfirmed) {
        this.#welcome(known, token);
        return;
      }
      this.#lose(known, 'has left its session');
    }
    const { task, refusal } = admit(info, this.#tasks, this.#definitions);
    if (refusal !== undefined) {
      this.#refuse(info, token, refusal, task);
      return;
    }
    this.#turnedAway.forget(info.node);
    this.#begin(task, info, token);
  }

  #begin(task: ClusterTask, info: NodeInfo, token: number): void {
    const id = randomUUID();
    const subject = this.#subjects.down(id);
    const session = new Session(
      id,
      info,
      task.index,
      this.#host,
      {
        maxFrameBytes: frameBytes(this.#leadership.nats?.info?.max_payload),
        send: (frame) => this.#publish(subject, frame),
      },
      {
        onStatus: (from, status) => this.#onStatus(task, from, status),
        onFree: (from) => {
          this.#letGo(from);
          this.#dispatcher.freed(from);
        },
        onResult: (name, us) => this.#dispatcher.measure(name, us),
        onStop: (_, stop) => this.#stops.heard(stop),
        onFailed: (from, error) => this.#onNodeFailed(task, from, error),
        onMalformed: (from) => {
          this.#drop('a message');
          // It was in the place of another, which is lost.
          this.#lose(from, 'has sent what is no message');
        },
      },
    );
    this.#tasks.add(task);
    task.session = session;
    task.host = info.host;
    task.pid = info.pid;
    task.enter('connecting');
    this.#sessions.set(id, session);
    this.#byNode.set(info.node, session);
    log(
      '%s: %s:%d is %s (pid %d)',
      this.#settings.cluster,
      task.job,
      task.index,
      info.host,
      info.pid,
    );
    this.#welcome(session, token);
    const { stop } = this.#stops;
    if (stop !== undefined) session.post(['stopped', stop]);
    else if (info.job === 'worker') {
      this.#host.prepare(task.index);
      this.#dispatcher.add(session);
    }
    this.#host.changed();
  }

  /** Again, if it was lost; what follows it is the channel's. */
  #welcome(session: Session, token: number): void {
    const { cancelGraceMs } = this.#host;
    const { unavailableAfterMs } = this.#settings;
    const welcome = {
      kind: 'welcome',
      run: this.#run,
      token,
      session: session.id,
      task: session.task,
      cancelGraceMs,
      unavailableAfterMs,
    };
    this.#publish(this.#subjects.node(session.info.node), json(welcome));
  }

  #refuse(info: NodeInfo, token: number, refusal: Refusal, task?: ClusterTask): void {
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
    if (!session.channel.receive(data)) this.#drop('a frame');
  }

  /** A sign of life. */
  #onHeard(session: Session): void {
    session.heard();
    if (!session.isSilent) return;
    session.isSilent = false;
    this.#onStatus(this.#taskOf(session), session, session.status);
  }

  #taskOf(session: Session): ClusterTask {
    return this.#tasks.all.find((each) => each.session === session) as ClusterTask;
  }

  #onStatus(task: ClusterTask, session: Session, { phase, cause, functions }: NodeStatus): void {
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
    void session.channel.drained().then(() => this.#lose(session, 'has left'));
  }

  #onNodeFailed(task: ClusterTask, session: Session, error: unknown): void {
    if (task.session !== session) return;
    session.status = { ...session.status, capacity: 0 };
    const phase = task.phase === 'import-failed' ? task.phase : 'failed';
    task.enter(phase, messageOf(error), 'correct it, and start the worker again');
    this.#lose(session, 'has failed', { cause: error });
    this.#failures += 1;
    const workers = this.#tasks.all.filter(({ job }) => job === 'worker');
    // Where nobody has come yet somebody better may; unless as many have failed as there are places.
    const isHopeless =
      workers.every(({ session: other }) => other === undefined) &&
      (this.#failures >= workers.length || workers.every(({ phase: at }) => at !== UNREGISTERED));
    if (isHopeless && error instanceof Error) this.#fail(error);
  }

  /** `how`: "has ended". */
  #lose(
    session: Session,
    how: string,
    { cause, remedy = START_AGAIN }: { cause?: unknown; remedy?: string } = {},
  ): void {
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
      task.enter('lost', error.message, remedy);
    }
    // It may be alive, and is to know.
    this.#publish(this.#subjects.down(session.id), Buffer.alloc(0));
    log('%s: %s', this.#settings.cluster, error.message);
    session.lose(error);
    this.#host.changed();
    if (info.job === 'ps' && wasReady) {
      this.#fail(new UnavailableError(`The parameter server ${name} is lost`, { cause: error }));
    }
    this.wake();
  }

  #onProbeReply(session: Session, answer: ProbeReply): void {
    this.#onHeard(session);
    this.#leadership.doubt(answer.token);
    if (session.isConfirmed && answer.session !== session.id) {
      this.#lose(session, 'has left its session');
    }
  }

  #onSilent(session: Session, forMs: number): void {
    const { host, pid } = session.info;
    session.isSilent = true;
    const cause = `${host} (pid ${pid}) has not answered for ${forMs} ms: it hangs, is stopped, or its network is cut`;
    if (this.#taskOf(session).enter(SILENT, cause, END_IT)) this.#host.changed();
  }

  /** What nobody of ours can have sent. */
  #drop(what: string, error?: unknown): void {
    if (error !== undefined) log('%s: %s', this.#settings.cluster, messageOf(error));
    this.#dropped += 1;
    if (this.#dropped > 1) return;
    process.emitWarning(
      `The cluster '${this.#settings.cluster}' has received ${what} that is malformed, and ` +
        'dropped it, as it will others without a word: `allstop doctor` tells how many',
      { code: 'ALLSTOP_MALFORMED_MESSAGE' },
    );
  }
}
