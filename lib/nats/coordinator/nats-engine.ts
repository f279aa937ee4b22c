/**
 * The coordinator's side of a cluster on many machines: what holds the cluster, the nodes and the stop
 * together.
 *
 * 1. The coordinator has every call that is not settled. What the server or a node loses is
 *    sent again from here; so nothing that the server stores has to be trusted.
 * 2. Nothing is sent before this run holds the cluster (leadership.ts), and nothing after another
 *    run is known to hold it.
 */

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { oneLine } from '../../base/thrown-value.ts';
import type { ClusterSpec } from '../../cluster/cluster-spec.ts';
import type { VariableStore } from '../../cluster/variables/variable.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import { requestOf } from '../../coordinator/explain.ts';
import { counted, duration } from '../../coordinator/words.ts';
import { poolClosed } from '../../errors/errors.ts';
import type { EngineReadiness, ReadinessReport, WorkerStart } from '../../errors/phases.ts';
import { log } from '../../events/spine.ts';
import type { Call } from '../../pool/queue/call.ts';
import type { Placement } from '../../pool/queue/call-lines.ts';
import type {
  Cancellation,
  ClusterHost,
  Engine,
  QueuedWork,
  WorkerInfo,
} from '../../pool/queue/strategy.ts';
import type { Resource } from '../../pool/worker/messages.ts';
import type { ModuleHooks } from '../../pool/worker/module.ts';
import type { StopRecord } from '../../record/stop-record.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import { ParameterServers } from '../variables/parameter-servers.ts';
import {
  type Alive,
  type CoordinatorReport,
  type RefusedNode,
  type WorkReport,
} from '../wire/control-messages.ts';
import { type Fingerprints, fingerprintsOf } from '../wire/fingerprints.ts';
import { MalformedMessages } from '../wire/malformed-messages.ts';
import { frameBytes } from '../wire/reliable-channel.ts';
import { packStop, unpackStop } from '../wire/session-messages.ts';
import { cleaned } from '../wire/shapes.ts';
import { Subjects } from '../wire/subjects.ts';
import { Dispatcher } from './dispatcher.ts';
import { Fence } from './fence.ts';
import { Leadership, type OnHeld } from './leadership.ts';
import { Nodes } from './nodes.ts';
import { OtherRuns } from './other-runs.ts';
import type { Session } from './session.ts';
import { StopArbiter } from './stop-arbiter.ts';
import { AddressChecks, ClusterTasks } from './tasks.ts';

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
  readonly #subjects: Subjects;
  readonly #run = randomUUID();
  readonly #tasks: ClusterTasks;
  readonly #sessions = new Map<string, Session>();
  readonly #nodes: Nodes;
  readonly #dispatcher: Dispatcher;
  readonly #servers: ParameterServers;
  readonly #leadership: Leadership;
  readonly #others: OtherRuns;
  readonly #addressChecks: AddressChecks;
  readonly #stops: StopArbiter;
  readonly #malformed: MalformedMessages;
  /** Undefined until the module file has been read. */
  #fingerprints: Fingerprints | undefined;
  #isOver = false;

  constructor(host: ClusterHost, settings: NatsSettings, options: NatsConnectionOptions) {
    const { cluster } = settings;
    this.#host = host;
    this.#dispatcher = new Dispatcher(host);
    this.#subjects = new Subjects(cluster);
    const since = new Date().toISOString();
    const own = { run: this.#run, host: cleaned(hostname()), pid: process.pid, since };
    const fence = new Fence(cluster, settings.replicas, own, options);
    this.#tasks = new ClusterTasks(settings.expect, settings.minWorkers, settings.workerStart);
    const state = (): EngineReadiness => this.#leadership.state;
    this.#servers = new ParameterServers(this.#tasks, this.#sessions, {
      state,
      assertHeld: () => this.assertHeld(),
    });
    this.#malformed = new MalformedMessages('The coordinator', cluster);
    this.#addressChecks = new AddressChecks({
      unregisteredTasks: () => this.#tasks.all.filter(({ phase }) => phase === 'unregistered'),
      onChange: () => host.changed(),
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
    const { unavailableAfterMs, setup, teardown, lostAfterMs } = settings;
    this.#nodes = new Nodes({
      host,
      cluster,
      lostAfterMs,
      run: this.#run,
      subjects: this.#subjects,
      sessions: this.#sessions,
      tasks: this.#tasks,
      servers: this.#servers,
      dispatcher: this.#dispatcher,
      malformed: this.#malformed,
      stops: this.#stops,
      leadership: () => this.#leadership,
      welcome: {
        unavailableAfterMs,
        ...(setup !== undefined && { setup }),
        ...(teardown !== undefined && { teardown }),
      },
      fail: (error) => this.#fail(error),
      failIfHeld: (why) => void this.#failIfHeld(why),
    });
    const name = `allstop ${cluster}`;
    const inboxPrefix = this.#subjects.inbox('coordinator');
    const connect = { name, inboxPrefix, options };
    this.#leadership = new Leadership(fence, settings, connect, {
      onConnection: (nats) => this.#subscribe(nats),
      onHeld: (nats) => {
        this.#others.say();
        this.#nodes.start(nats);
        this.#addressChecks.start();
        this.wake();
      },
      onSigned: () => this.#others.sayAlive(),
      isAlive: (run) => this.#others.isAlive(run),
      hasRival: () => this.#others.hasRival(),
      onDisconnected: (error) => {
        log('%s: disconnected: %s', cluster, error.message);
        host.tell('disconnected', error);
      },
      onReconnected: () => {
        log('%s: connected again', cluster);
        host.tell('reconnected');
      },
      onDown: () => {
        this.#nodes.stop(false);
        this.#addressChecks.stop();
      },
      onLost: (error) => this.#fail(error),
      onRefused: ({ message }) => log('%s: the server refuses: %s', cluster, message),
      onChange: () => {
        this.#dispatcher.hold(this.#leadership.state.phase === 'ready');
        host.changed();
      },
    });
    this.#others = new OtherRuns(own, this.#leadership, {
      send: (message) => void this.#publish(this.#subjects.who, message),
      onTwo: (other) => warnOfTwo(cluster, other, this.#leadership.token ?? 0),
    });
    attachmentOf(host.coordinator).workers.set(this, { work: () => workLines(this.#work()) });
    fingerprintsOf(settings).then(
      (found) => (this.#fingerprints = found),
      (error: Error) => this.#fail(error),
    );
  }

  get functions(): readonly string[] | undefined {
    return this.#nodes.functions;
  }

  prepare(resource: Resource): void {
    this.#dispatcher.prepare(resource);
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
      nodesLost: this.#nodes.lost,
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

  cancel(call: Call, cancellation: Cancellation): void {
    this.#stops.afterBroadcast(() => this.#nodes.cancel(call, cancellation));
  }

  leave(): void {
    for (const session of this.#sessions.values()) session.post({ kind: 'leave' });
  }

  async close(): Promise<void> {
    this.#stops.hurry();
    this.#isOver = true;
    this.#nodes.stop(true);
    this.#addressChecks.close();
    this.#dispatcher.hold(false);
    this.#leadership.end({ phase: 'closed' }, poolClosed('cluster'));
    await this.#nodes.close();
    attachmentOf(this.#host.coordinator).workers.delete(this);
    await this.#leadership.close();
  }

  /** A run that is taken over has lost its nodes, and fails by the look at the key itself. */
  async #failIfHeld(why: Error): Promise<void> {
    await this.#leadership.assertHeld().catch(() => undefined);
    this.#fail(why);
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#stops.hurry();
    this.#isOver = true;
    this.#nodes.stop(true);
    this.#addressChecks.close();
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
      this.#malformed.subscribe(nats, subject, onMessage);
    };
    listen(subjects.hello, ({ data }) => {
      const { token } = this.#leadership;
      if (this.#isOver || token === undefined || this.#fingerprints === undefined) return;
      this.#nodes.hello(data, token, this.#fingerprints);
    });
    listen(subjects.up('*'), ({ subject, data }) => this.#nodes.frame(subject, data));
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
        refused: this.#nodes.refused,
        malformed: this.#malformed.count,
        work: this.#work(),
        stop: attachmentOf(this.#host.coordinator).errors.record(false),
        maxBytes: frameBytes(nats.info?.max_payload),
      });
      message.respond(report);
    });
  }

  #work(): WorkReport {
    const { waiting, oldest, failures } = this.#host.work();
    const [first] = oldest;
    return {
      waiting,
      ...(first !== undefined && { oldest: { name: first.name, ms: first.ms } }),
      ...this.#blocked(oldest),
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

  /** The oldest call that no worker can take, which may stand behind others that one can. */
  #blocked(oldest: QueuedWork['oldest']): { blocked?: string } {
    for (const [index, { name, placement }] of oldest.entries()) {
      const why = this.#whyBlocked(placement);
      if (why !== undefined) return { blocked: index === 0 ? why : `'${name}' waits: ${why}` };
    }
    return {};
  }

  /** Why no worker can take a call with this placement; undefined: one can, if it is not busy. */
  #whyBlocked(placement: Placement | undefined): string | undefined {
    const able = this.#nodes.staying.filter(
      ({ info, canTake }) => info.job === 'worker' && canTake,
    );
    if (able.length === 0) return 'no worker is ready';
    if (placement === undefined) return undefined;
    const fits = able.some(({ task, info }) => placement.fits(task, info.resources ?? {}));
    return fits ? undefined : `there is no ${placement.text.replace(/^a /, '')}`;
  }

  #publish(subject: string, payload: Uint8Array): boolean {
    return this.#leadership.connection.publish(subject, payload);
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

// What a coordinator tells `allstop doctor`, cut to the length that the server permits; and its work, for `explain()`.

/** The most tasks, and the most refused nodes, in one report. */
const MAX_ENTRIES = 1_000;
/** The longest text: the message of an error has any length. */
const MAX_TEXT = 1_000;

type DoctorReportOptions = {
  run: string;
  report: ReadinessReport;
  refused: RefusedNode[];
  malformed: number;
  work: WorkReport;
  stop: StopRecord | undefined;
  maxBytes: number;
};

/** What waits and what fails, for people. */
function workLines({ waiting, oldest, blocked, failures }: WorkReport): string[] {
  const why = blocked === undefined ? '' : `: ${blocked}`;
  const line =
    oldest === undefined
      ? []
      : [
          `${counted(waiting, 'call')} ${waiting === 1 ? 'waits' : 'wait'}, '${oldest.name}' for ${duration(oldest.ms)}${why}`,
        ];
  const failed = failures.map(
    ({ name, count, last }) =>
      `'${name}' has failed ${count === 1 ? 'once' : `${count} times`} in the last minutes. The last: ${last}`,
  );
  return [...line, ...failed];
}

/**
 * Cuts each text, then halves the number of entries until the report fits. Tasks that are not ready
 * come first.
 */
function doctorReport(options: DoctorReportOptions): Uint8Array {
  const cut = (_name: string, value: unknown): unknown =>
    typeof value === 'string' ? value.slice(0, MAX_TEXT) : value;
  const bytesOf = (count: number): Uint8Array =>
    Buffer.from(JSON.stringify(reportOf(options, count), cut));
  let count = MAX_ENTRIES;
  let bytes = bytesOf(count);
  while (bytes.byteLength > options.maxBytes && count > 0) {
    count = Math.floor(count / 2);
    bytes = bytesOf(count);
  }
  return bytes;
}

/** Who has stopped the run, for people. */
function stopOf({
  kind,
  requester,
  requestedAt,
  error,
}: StopRecord): NonNullable<CoordinatorReport['stop']> {
  const { worker, host } = requester;
  const where = worker === undefined ? '' : ` on ${worker} (${host})`;
  const what = kind === 'plain' ? 'no error' : oneLine(error);
  const ms = Date.now() - requestedAt.getTime();
  return { ms, why: `${requestOf(requester)}${where}: ${what}` };
}

function reportOf(
  { run, report, refused, malformed, work, stop }: DoctorReportOptions,
  count: number,
): CoordinatorReport {
  const { tasks } = report;
  const ordered = [...tasks.filter(({ ready }) => !ready), ...tasks.filter(({ ready }) => ready)];
  const kept = ordered.slice(0, count);
  return {
    run,
    report: { ...report, tasks: kept },
    leftOff: tasks.length - kept.length,
    turnedAway: refused.slice(0, count),
    dropped: malformed,
    ...(stop !== undefined && { stop: stopOf(stop) }),
    work: {
      ...work,
      running: work.running.slice(0, count),
      failures: work.failures.slice(0, count),
    },
  };
}
