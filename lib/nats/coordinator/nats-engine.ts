/**
 * The coordinator's side of a cluster on many machines: which nodes there are, and which node
 * gets which closure.
 *
 * 1. The coordinator has every closure that is not settled. What the server or a node loses is
 *    sent again from here; so nothing that the server stores has to be trusted.
 * 2. A node has a closure through one session, and a session has one node. When a session is
 *    over, nothing is accepted from it any more, and its closures are returned to the queue.
 * 3. A session whose node probes find gone or silent (probes.ts) is *away*: its task is free and
 *    its closures are returned to the queue, but it is not over. With the node's next sign of
 *    life it goes on (session.ts): what has ended there is accepted, the first result counts.
 *    It is over when its node says so, or is in another session.
 * 4. Nothing is sent before this run holds the cluster (leadership.ts), and nothing after another
 *    run is known to hold it.
 */

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { debuglog } from 'node:util';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { messageOf } from '../../base/thrown-value.ts';
import type { ClusterSpec } from '../../cluster/cluster-spec.ts';
import type { VariableStore } from '../../cluster/variables/variable-store.ts';
import { clusterClosed } from '../../errors/cluster-closed.ts';
import { UnavailableError } from '../../errors/errors.ts';
import {
  type Explanation,
  failedRemedy,
  type Loss,
  lost,
  nodeRemedy,
  type WorkerStart,
} from '../../errors/phases.ts';
import type { EngineReadiness, ReadinessReport } from '../../errors/readiness-report.ts';
import type { Closure } from '../../pool/queue/closure.ts';
import type { Placement } from '../../pool/queue/lines/placement.ts';
import type { Cancellation, ClusterHost, Engine, WorkerInfo } from '../../pool/queue/strategy.ts';
import type { ModuleHooks } from '../../pool/worker/module-options.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import { ParameterServers } from '../variables/parameter-servers.ts';
import {
  type Alive,
  json,
  type NodeInfo,
  type ProbeReply,
  parseControl,
  parseUnprintable,
  type WorkReport,
} from '../wire/control-messages.ts';
import { type Fingerprints, fingerprintsOf } from '../wire/fingerprints.ts';
import { MalformedMessages } from '../wire/malformed-messages.ts';
import { frameBytes, sharedWindowBytes } from '../wire/reliable-channel.ts';
import { type NodeStatus, packStop, unpackStop } from '../wire/session-messages.ts';
import { Subjects } from '../wire/subjects.ts';
import { subscriptionCallback } from '../wire/subscription.ts';
import { AddressChecks } from './address-checks.ts';
import { admit, isCrowded, type Refused, RefusedNodes, refuseUnprintable } from './admission.ts';
import { CancelWatch } from './cancel-watch.ts';
import { Dispatcher } from './dispatcher.ts';
import { doctorReport } from './doctor-report.ts';
import { endSessions } from './end-sessions.ts';
import { Fence } from './fence.ts';
import { GivenUp } from './given-up.ts';
import { Leadership, type OnHeld } from './leadership.ts';
import { OtherRuns } from './other-runs.ts';
import { Probes } from './probes.ts';
import { Session } from './session.ts';
import { StopArbiter } from './stop-arbiter.ts';
import { type ClusterTask, ClusterTasks, stuckThread } from './tasks.ts';

const log = debuglog('allstop');

/** The part of NatsStrategy that the engine reads. */
export type NatsSettings = ModuleHooks & {
  readonly module: URL;
  readonly cluster: string;
  readonly expect: ClusterSpec | undefined;
  readonly minWorkers: number | undefined;
  readonly unavailableAfterMs: number;
  readonly lostAfterMs: number;
  readonly onHeld: OnHeld;
  readonly definition: string | undefined;
  readonly replicas: number;
  readonly workerStart: WorkerStart;
};

export class NatsEngine implements Engine {
  readonly #host: ClusterHost;
  readonly #settings: NatsSettings;
  readonly #subjects: Subjects;
  readonly #run = randomUUID();
  readonly #tasks: ClusterTasks;
  readonly #sessions = new Map<string, Session>();
  readonly #dispatcher: Dispatcher;
  readonly #servers: ParameterServers;
  readonly #byNode = new Map<string, Session>();
  readonly #givenUp = new GivenUp();
  readonly #leadership: Leadership;
  readonly #others: OtherRuns;
  readonly #addressChecks: AddressChecks;
  readonly #refused = new RefusedNodes();
  readonly #probes: Probes;
  readonly #cancelWatch: CancelWatch;
  readonly #stops: StopArbiter;
  readonly #malformed: MalformedMessages;
  /** Undefined until the module file has been read. */
  #fingerprints: Fingerprints | undefined;
  #functions: readonly string[] | undefined;
  #isOver = false;
  #nodesLost = 0;

  constructor(host: ClusterHost, settings: NatsSettings, options: NatsConnectionOptions) {
    this.#host = host;
    this.#settings = settings;
    this.#dispatcher = new Dispatcher(host);
    this.#subjects = new Subjects(settings.cluster);
    const since = new Date().toISOString();
    const own = { run: this.#run, host: hostname(), pid: process.pid, since };
    const fence = new Fence(settings.cluster, settings.replicas, own, options);
    this.#tasks = new ClusterTasks(settings.expect, settings.minWorkers, settings.workerStart);
    const state = (): EngineReadiness => this.#leadership.state;
    this.#servers = new ParameterServers(this.#tasks, this.#sessions, {
      state,
      assertHeld: () => this.assertHeld(),
    });
    this.#malformed = new MalformedMessages('The coordinator', settings.cluster);
    this.#addressChecks = new AddressChecks({
      unregisteredTasks: () => this.#tasks.all.filter(({ phase }) => phase === 'unregistered'),
      onChange: () => host.changed(),
    });
    this.#probes = new Probes(this.#sessions, settings.lostAfterMs, {
      probeFor: ({ id, info }) => ({
        subject: this.#subjects.node(info.node),
        probe: { kind: 'probe', run: this.#run, token: this.#leadership.token ?? 0, session: id },
      }),
      onReply: (session, reply) => this.#onProbeReply(session, reply),
      onMalformed: () => this.#malformed.drop('a reply to a probe'),
      onSilent: (session, why) => this.#onSilent(session, why),
      onLost: (session, loss) => this.#onLost(session, loss),
      onRound: () => {
        if (this.#refused.expire()) this.#host.changed();
        for (const session of this.#givenUp.expired(this.#tasks)) this.#lose(session, lost.gone);
      },
    });
    this.#cancelWatch = new CancelWatch(this.#sessions, host.cancelGraceMs, {
      isConnected: () => this.#leadership.connection.nats !== undefined,
      onUnreachable: (session) => this.#setAway(session, lost.unreachable),
    });
    const name = `allstop ${settings.cluster}`;
    const inboxPrefix = this.#subjects.inbox('coordinator');
    const connect = { name, inboxPrefix, options };
    this.#leadership = new Leadership(fence, settings, connect, {
      onConnection: (nats) => this.#subscribe(nats),
      onHeld: (nats) => this.#onHeld(nats),
      onSigned: () => this.#others.sayAlive(),
      isAlive: (run) => this.#others.isAlive(run),
      hasRival: () => this.#others.hasRival(),
      onDisconnected: (error) => {
        log('%s: disconnected: %s', settings.cluster, error.message);
        host.disconnected(error);
      },
      onReconnected: () => {
        log('%s: connected again', settings.cluster);
        host.reconnected();
      },
      onDown: () => {
        this.#probes.stop();
        this.#addressChecks.stop();
      },
      onLost: (error) => this.#fail(error),
      onRefused: ({ message }) => log('%s: the server refuses: %s', settings.cluster, message),
      onChange: () => {
        this.#dispatcher.hold(this.#leadership.state.phase === 'ready');
        host.changed();
      },
    });
    this.#others = new OtherRuns(own, this.#leadership, {
      send: (message) => void this.#publish(this.#subjects.who, message),
      onTwo: (other) => warnOfTwo(settings.cluster, other, this.#leadership.token ?? 0),
    });
    this.#stops = new StopArbiter(host.coordinator, {
      broadcast: (stop) => {
        if (this.#isOver) return;
        this.#publish(this.#subjects.stop(this.#run), packStop(stop));
        this.#leadership.connection.flush();
      },
      announce: (stop) => {
        if (this.#isOver) return;
        for (const session of this.#sessions.values()) session.post({ kind: 'stopped', stop });
      },
    });
    fingerprintsOf(settings).then(
      (found) => (this.#fingerprints = found),
      (error: Error) => this.#fail(error),
    );
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

  whyNowhere({ worker }: Placement): string | undefined {
    return worker === undefined ? undefined : this.#tasks.whyNever(worker);
  }

  get capacity(): number {
    return [...this.#sessions.values()].reduce((sum, { status }) => sum + status.capacity, 0);
  }

  report(): ReadinessReport {
    const { state } = this.#leadership;
    const tasks = this.#tasks.report(state.phase, (session) => this.#servers.holds(session));
    return { ready: state.phase === 'ready' && this.#tasks.areReady, engine: state, tasks };
  }

  stats(): Record<string, number> {
    const { all } = this.#tasks;
    return {
      restarts: this.workers.reduce((sum, { restarts }) => sum + restarts, 0),
      nodes: all.filter(({ session }) => session !== undefined).length,
      nodesLost: this.#nodesLost,
      connections: this.#leadership.connections,
      malformedMessages: this.#malformed.count,
    };
  }

  variables(owner: object): VariableStore {
    return this.#servers.ownedBy(owner);
  }

  async assertHeld(): Promise<void> {
    await this.#leadership.assertHeld();
  }

  /** Does nothing: the connection keeps the program alive until the cluster is closed. */
  setNeeded(): void {}

  forget(id: number): void {
    for (const session of this.#sessions.values()) session.forget(id);
  }

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
      if (cancellation.replace) this.#cancelWatch.start();
    }
  }

  async close(): Promise<void> {
    this.#stops.hurry();
    this.#isOver = true;
    this.#clearTimers();
    this.#dispatcher.hold(false);
    this.#leadership.end({ phase: 'closed' }, clusterClosed());
    const sessions = [...this.#sessions.values()];
    await endSessions(sessions, this.#leadership.connection.nats !== undefined);
    this.#sessions.clear(); // first, so that no session counts as lost
    for (const session of sessions) session.close();
    for (const task of this.#tasks.all) {
      task.endSession();
      task.enter('closed');
    }
    await this.#leadership.close();
  }

  #clearTimers(): void {
    this.#cancelWatch.stop();
    this.#probes.stop();
    this.#addressChecks.close();
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#stops.hurry();
    this.#isOver = true;
    this.#clearTimers();
    this.#leadership.end({ phase: 'failed', cause: error.message }, error);
    this.#servers.fail(error);
    this.#dispatcher.hold(false);
    this.#host.failed(error);
    this.#host.changed();
    for (const session of this.#sessions.values()) session.post({ kind: 'end', isClosed: false });
  }

  // ---------------------------------------------------------------- the servers

  #subscribe(nats: NatsConnection): void {
    const subjects = this.#subjects;
    const listen = (subject: string, onMessage: (message: Msg) => void): void => {
      const callback = subscriptionCallback(onMessage, (error) =>
        this.#malformed.drop(`at ${subject}`, error),
      );
      nats.subscribe(subject, { callback });
    };
    listen(subjects.hello, ({ data }) => this.#onHello(data));
    listen(subjects.up('*'), ({ subject, data }) => this.#onFrame(subject, data));
    listen(subjects.stop(this.#run), ({ data }) => {
      const stop = unpackStop(data);
      if (stop === undefined) this.#malformed.drop('a stop');
      else this.#stops.heard(stop);
    });
    listen(subjects.who, ({ data, reply }) => {
      if (!this.#others.receive(data, reply)) this.#malformed.drop('a who');
    });
    listen(subjects.report, (message) => {
      const report = doctorReport({
        run: this.#run,
        report: this.report(),
        refused: this.#refused.all,
        malformed: this.#malformed.count,
        work: this.#work(),
        maxBytes: frameBytes(nats.info?.max_payload),
      });
      message.respond(report);
    });
  }

  #work(): WorkReport {
    const { waiting, oldest, failures } = this.#host.work();
    const blocked = oldest && this.#whyBlocked(oldest.placement);
    return {
      waiting,
      ...(oldest !== undefined && { oldest: { name: oldest.name, ms: oldest.ms } }),
      ...(blocked !== undefined && { blocked }),
      running: this.workers.flatMap(({ name: worker, calls }) =>
        calls.map(({ name, startedAt }) => ({
          worker,
          name,
          ms: Date.now() - startedAt.getTime(),
        })),
      ),
      failures: [...failures],
    };
  }

  /** Why no worker can take a call with this placement; undefined: one can, if it is not busy. */
  #whyBlocked(placement: Placement | undefined): string | undefined {
    const able = this.#there().filter(({ info, canTake }) => info.job === 'worker' && canTake);
    if (able.length === 0) return 'no worker is ready';
    if (placement === undefined) return undefined;
    const fits = able.some(({ task, info }) => placement.fits(task, info.resources ?? {}));
    return fits ? undefined : `there is no ${placement.text.replace(/^a /, '')}`;
  }

  #onHeld(nats: NatsConnection): void {
    this.#others.say();
    for (const session of this.#sessions.values()) {
      // Frames were cut to the length that the last connection permitted.
      if (session.channel.fits(nats.info?.max_payload)) session.channel.resume();
      else this.#lose(session, lost.tooLong);
    }
    this.#probes.start(nats);
    this.#addressChecks.start();
    this.wake();
  }

  #publish(subject: string, payload: Uint8Array): boolean {
    return this.#leadership.connection.publish(subject, payload);
  }

  // ---------------------------------------------------------------- the nodes

  #onHello(data: Uint8Array): void {
    const { token } = this.#leadership;
    if (this.#isOver || token === undefined || this.#fingerprints === undefined) return;
    const hello = parseControl(data, 'hello', 'bye');
    if (hello === undefined) {
      const odd = parseUnprintable(data);
      if (odd === undefined) this.#malformed.drop('a hello');
      else this.#refuse(odd.info, token, refuseUnprintable(odd.info, odd.names, this.#tasks));
      return;
    }
    if (hello.kind === 'bye') {
      const leaver = this.#byNode.get(hello.node);
      if (leaver?.id === hello.session) {
        this.#lose(leaver, leaver.running > 0 ? lost.hasAbandoned : lost.hasLeft);
      }
      return;
    }
    const { info } = hello;
    const known = this.#byNode.get(info.node);
    if (known !== undefined) {
      if (info.session === known.id) {
        this.#onHeard(known);
        known.channel.resume();
        return;
      }
      if (!known.isConfirmed) {
        this.#welcome(known, token);
        return;
      }
      this.#lose(known, lost.leftSession);
    }
    if (isCrowded(this.#sessions)) return; // the node repeats its hello
    const admission = admit(info, this.#tasks, this.#fingerprints);
    if (admission.refusal !== undefined) this.#refuse(info, token, admission);
    else {
      const { task } = admission;
      if (task.session !== undefined) this.#setAway(task.session, lost.gone);
      this.#begin(task, info, token);
    }
  }

  #begin(task: ClusterTask, info: NodeInfo, token: number): void {
    this.#refused.forget(info.node);
    const id = randomUUID();
    const subject = this.#subjects.down(id);
    const session = new Session(
      id,
      info,
      task.index,
      this.#host,
      {
        maxFrameBytes: frameBytes(this.#leadership.connection.nats?.info?.max_payload),
        windowBytes: () => sharedWindowBytes(this.#sessions.size),
        send: (frame) => this.#publish(subject, frame),
      },
      {
        onStatus: (from, status) => this.#onStatus(task, from, status),
        onFree: (from) => {
          this.#letGo(from);
          this.#dispatcher.freed(from);
        },
        onResult: (closure, name, us) => {
          this.#dispatcher.measure(name, us);
          this.#givenUp.cancelDuplicates(closure);
        },
        onStop: (_, stop) => this.#stops.heard(stop),
        onThread: (from, error) => this.#onThread(task, from, error),
        onSetupFailed: (_, error) => this.#failIfHopeless(error),
        onFailed: (from, error) => this.#onNodeFailed(task, from, error),
        variables: this.#servers,
        isElsewhere: (name) =>
          this.#there().some(({ status }) => status.functions?.includes(name) === true),
        onMalformed: (from) => {
          this.#malformed.drop('a message of a session');
          // A third client has used the number of a frame: the node's own frame with that number
          // will be dropped as a copy. Only a new session helps.
          this.#lose(from, lost.malformed);
        },
      },
    );
    this.#tasks.add(task);
    task.beginSession(session);
    this.#sessions.set(id, session);
    this.#byNode.set(info.node, session);
    const { job, index } = task;
    log('%s: %s:%d is %s (pid %d)', this.#settings.cluster, job, index, info.host, info.pid);
    this.#welcome(session, token);
    this.#servers.begin(session);
    const { stop } = this.#stops;
    if (stop !== undefined) session.post({ kind: 'stopped', stop });
    else if (info.job === 'worker') {
      this.#host.prepare(task.index);
      this.#dispatcher.add(session);
    }
    this.#host.changed();
  }

  /** Sends the welcome; again for each hello, until the node has answered in the session. */
  #welcome(session: Session, token: number): void {
    const { unavailableAfterMs, setup, teardown } = this.#settings;
    const run = this.#run;
    const { module: definition } = this.#fingerprints as Fingerprints;
    const from = { run, token, unavailableAfterMs, definition, setup, teardown };
    const welcome = session.welcome(from);
    this.#publish(this.#subjects.node(session.info.node), json(welcome));
  }

  #refuse(info: NodeInfo, token: number, admission: Refused): void {
    const { task, refusal } = admission;
    const { phase, cause, remedy } = refusal;
    this.#refused.note(info, refusal, task);
    if (task !== undefined) {
      task.setNode(info);
      if (task.enter(refusal.phase, cause, remedy)) this.#host.changed();
    }
    const message = { kind: 'refused', run: this.#run, token, phase, why: `${cause}: ${remedy}` };
    this.#publish(this.#subjects.node(info.node), json(message));
  }

  #onFrame(subject: string, data: Uint8Array): void {
    const session = this.#sessions.get(subject.slice(subject.lastIndexOf('.') + 1));
    if (session === undefined) return; // the session is over
    this.#onHeard(session);
    if (!session.channel.receive(data)) this.#malformed.drop('a frame');
  }

  /** Called for each sign that the node is alive. */
  #onHeard(session: Session): void {
    const wasThere = session.missed === 0 && session.absent === undefined && !session.isAway;
    session.heard();
    if (wasThere && !session.isSilent) return;
    session.isSilent = false;
    const task = this.#tasks.named(session);
    if (session.isAway) this.#onBack(session, task);
    this.#onStatus(task, session, session.status);
  }

  /**
   * The node of a session that was away is there again. If another node has its task now, it
   * finishes what it has, and leaves the session.
   */
  #onBack(session: Session, task: ClusterTask): void {
    session.isAway = false;
    if (task.session === undefined) {
      task.resumeSession(session);
      if (this.#stops.stop === undefined && task.job === 'worker') {
        this.#host.prepare(task.index);
        this.#dispatcher.add(session);
      }
    } else session.isLeaving = true;
    session.takeBack();
    this.#letGo(session);
  }

  #onStatus(task: ClusterTask, session: Session, { phase, cause, functions }: NodeStatus): void {
    if (task.session !== session) {
      if (!session.isAway) this.#letGo(session);
      return;
    }
    if (functions !== undefined) this.#lookAtFunctions();
    if (phase === 'ready') session.wasReady = true;
    const remedy = cause === undefined ? undefined : nodeRemedy;
    if (!session.isConfirmed) task.enter('connecting');
    else task.enter(session.isLeaving ? 'leaving' : phase, cause, remedy);
    this.#host.changed();
    if (task.isReady && !session.hasStarted) {
      session.hasStarted = true;
      this.#host.workerStarted(task.info);
    }
    this.#letGo(session);
    this.#dispatcher.changed(session);
    if (task.job === 'ps') this.#servers.changed();
  }

  /** Those that the nodes have which are there. */
  #lookAtFunctions(): void {
    const lists = this.#there().flatMap(({ status }) =>
      status.functions === undefined ? [] : [status.functions],
    );
    const names = new Set(lists.flat());
    this.#functions = lists.length === 0 ? undefined : [...names];
    this.#dispatcher.mix(lists.some(({ length }) => length !== names.size));
  }

  #there(): Session[] {
    return [...this.#sessions.values()].filter(({ isAway, isLeaving }) => !isAway && !isLeaving);
  }

  #onThread(task: ClusterTask, session: Session, error: unknown): void {
    if (task.session !== session) return;
    if (error instanceof Error) this.#host.workerLost(task.info, error);
    else this.#host.workerStuck(stuckThread(task));
  }

  /** Ends the session of a node that wants to leave, once it has no functions any more. */
  #letGo(session: Session): void {
    if (!session.isLeaving || session.running > 0 || session.isLetGo) return;
    session.isLetGo = true;
    session.post({ kind: 'end', isClosed: false });
    void session.channel.drained().then(() => this.#lose(session, lost.hasLeft));
  }

  #onNodeFailed(task: ClusterTask, session: Session, error: unknown): void {
    if (task.session !== session) return;
    session.status = { ...session.status, capacity: 0 };
    const isKnown = task.phase === 'import-failed' || task.phase === 'setup-failed';
    task.enter(isKnown ? task.phase : 'failed', messageOf(error), failedRemedy);
    this.#lose(session, lost.hasFailed, error);
    this.#tasks.nodesFailed += 1;
    this.#failIfHopeless(error);
  }

  #failIfHopeless(error: unknown): void {
    if (this.#tasks.areHopeless && error instanceof Error) this.#fail(error);
  }

  /** Ends a session. `cause`: the node's error, which its task already shows. */
  #lose(session: Session, loss: Loss, cause?: unknown): void {
    if (!this.#sessions.has(session.id)) return;
    this.#setAway(session, loss, cause);
    this.#sessions.delete(session.id);
    this.#givenUp.delete(session);
    const { node } = session.info;
    if (this.#byNode.get(node) === session) this.#byNode.delete(node);
    // An empty message ends the session at a node that is still alive.
    this.#publish(this.#subjects.down(session.id), Buffer.alloc(0));
    session.close();
    if (!session.isConfirmed) this.#tasks.forget(session);
  }

  /** The node counts as lost: its task is free, and its closures are queued again. */
  #setAway(session: Session, { how, remedy }: Loss, cause?: unknown): void {
    if (session.isAway) return;
    session.isAway = true;
    session.awaySince = performance.now();
    this.#givenUp.add(session);
    const { info, task: index } = session;
    this.#dispatcher.remove(session);
    this.#lookAtFunctions();
    const task = this.#tasks.named(session);
    if (task.session !== session) {
      session.giveUp(new UnavailableError(`Worker ${info.job}:${index} ${how}`));
      this.wake();
      return;
    }
    const hasLeft = how === lost.hasLeft.how;
    if (!hasLeft) this.#nodesLost += 1;
    const name = `${info.job}:${index}`;
    const error = new UnavailableError(
      `Worker ${name} (${info.host}, pid ${info.pid}) ${how}`,
      cause === undefined ? {} : { cause },
    );
    const wasReady = session.status.phase === 'ready' || session.isLeaving;
    const isNamed = info.job === 'ps' && this.#tasks.expectedServers?.includes(index) === true;
    const isNeeded = this.#servers.isHome(session) || (isNamed && wasReady);
    task.endSession();
    if (!hasLeft) task.restarts += 1;
    if (cause === undefined) task.enter(hasLeft ? 'left' : 'lost', error.message, remedy);
    log('%s: %s', this.#settings.cluster, error.message);
    session.giveUp(error);
    this.#host.changed();
    if (!hasLeft) this.#host.workerLost(task.info, error);
    if (isNeeded) {
      this.#fail(new UnavailableError(`The parameter server ${name} is lost`, { cause: error }));
    }
    this.wake();
  }

  #onProbeReply(session: Session, reply: ProbeReply): void {
    this.#onHeard(session);
    this.#leadership.doubt(reply.token);
    const aheadMs = this.#leadership.tooFarBy(reply.token);
    if (aheadMs > 0 && this.#tasks.noteIgnored(session, aheadMs)) this.#host.changed();
    if (session.isConfirmed && reply.session !== session.id) {
      this.#lose(session, lost.leftSession);
    }
  }

  #onLost(session: Session, loss: Loss): void {
    if (session.isConfirmed) this.#setAway(session, loss);
    else this.#lose(session, loss);
  }

  #onSilent(session: Session, { cause, remedy }: Explanation): void {
    session.isSilent = true;
    const task = this.#tasks.named(session);
    if (task.session !== session) return;
    if (task.enter('silent', cause, remedy)) this.#host.changed();
  }
}

function warnOfTwo(cluster: string, { host, pid, since, token }: Alive, own: number): void {
  const which =
    token > own ? 'which is newer, and has the workers that hear both' : 'which is older';
  process.emitWarning(
    `Another program runs the cluster '${cluster}', too (${host}, pid ${pid}, since ${since}), ${which}. ` +
      'Each holds a key of its own, since they use different JetStreams (another `jetstream.domain`): ' +
      'end one of the two, or give it another cluster name',
    { code: 'ALLSTOP_TWO_COORDINATORS' },
  );
}
