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
import type { VariableStore } from '../../cluster/variables/variable.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import { requestOf } from '../../coordinator/explain.ts';
import { poolClosed } from '../../errors/errors.ts';
import type { ReadinessReport } from '../../errors/phases.ts';
import type { Call } from '../../pool/queue/call.ts';
import type { Placement } from '../../pool/queue/call-lines.ts';
import type { Cancellation, ClusterHost, Engine, WorkerInfo } from '../../pool/queue/strategy.ts';
import type { Resource } from '../../pool/worker/messages.ts';
import type { StopRecord } from '../../record/stop-record.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import type { CoordinatorReport, WorkReport } from '../wire/control-messages.ts';
import { frameBytes } from '../wire/reliable-channel.ts';
import { unpackStop } from '../wire/session-messages.ts';
import { cleaned } from '../wire/shapes.ts';
import { MalformedMessages, Subjects } from '../wire/subjects.ts';
import { type Fingerprints, fingerprintsOf } from './admission.ts';
import { Leadership, type NatsSettings, type RunContext } from './leadership.ts';
import { Nodes } from './nodes.ts';

export class NatsEngine implements Engine {
  readonly #host: ClusterHost;
  readonly #context: RunContext;
  readonly #leadership: Leadership;
  readonly #nodes: Nodes;
  /** Undefined until the module file has been read. */
  #fingerprints: Fingerprints | undefined;
  #isOver = false;

  constructor(host: ClusterHost, settings: NatsSettings, connection: NatsConnectionOptions) {
    const { cluster } = settings;
    const since = new Date().toISOString();
    this.#host = host;
    this.#context = {
      host,
      settings,
      own: { run: randomUUID(), host: cleaned(hostname()), pid: process.pid, since },
      subjects: new Subjects(cluster),
      malformed: new MalformedMessages('The coordinator', cluster),
    };
    const fail = (error: Error): void => this.#fail(error);
    this.#leadership = new Leadership({
      ...this.#context,
      connection,
      onConnection: (nats) => this.#subscribe(nats),
      onHeld: (nats) => {
        this.#nodes.start(nats);
        this.wake();
      },
      onDown: () => this.#nodes.pause(),
      onLost: fail,
      onChange: () => {
        this.#nodes.dispatcher.hold(this.#leadership.state.phase === 'ready');
        host.changed();
      },
    });
    this.#nodes = new Nodes({ ...this.#context, leadership: this.#leadership, fail });
    fingerprintsOf(settings).then((found) => (this.#fingerprints = found), fail);
  }

  get functions(): readonly string[] | undefined {
    return this.#nodes.functions;
  }

  prepare(resource: Resource): void {
    this.#nodes.dispatcher.prepare(resource);
  }

  get workers(): WorkerInfo[] {
    return this.#nodes.tasks.workers;
  }

  whyNowhere({ worker }: Placement): string | undefined {
    return worker === undefined ? undefined : this.#nodes.tasks.whyNever(worker);
  }

  whyBlocked(placement: Placement | undefined): string | undefined {
    const able = this.#nodes.staying.filter(
      ({ info, canTake }) => info.job === 'worker' && canTake,
    );
    if (able.length === 0) return 'no worker is ready';
    if (placement === undefined) return undefined;
    const fits = able.some(({ task, info }) => placement.fits(task, info.resources ?? {}));
    return fits ? undefined : `there is no ${placement.text.replace(/^a /, '')}`;
  }

  get capacity(): number {
    return [...this.#nodes.sessions.values()].reduce((sum, { status }) => sum + status.capacity, 0);
  }

  report(): ReadinessReport {
    const { state } = this.#leadership;
    const { tasks, servers } = this.#nodes;
    const report = tasks.report(state.phase, (session) => servers.holds(session));
    return { ready: state.phase === 'ready' && tasks.areReady, engine: state, tasks: report };
  }

  stats(): Record<string, number> {
    return {
      restarts: this.workers.reduce((sum, { restarts }) => sum + restarts, 0),
      nodes: this.#nodes.tasks.all.filter(({ session }) => session !== undefined).length,
      nodesLost: this.#nodes.lost,
      connections: this.#leadership.connections,
      malformedMessages: this.#context.malformed.count,
    };
  }

  variables(owner: object): VariableStore {
    return this.#nodes.servers.ownedBy(owner);
  }

  async assertHeld(): Promise<void> {
    await this.#leadership.assertHeld();
  }

  /** Does nothing: the connection keeps the program alive until the cluster is closed. */
  setNeeded(): void {}

  forget(id: number): void {
    for (const session of this.#nodes.sessions.values()) session.forget(id);
  }

  wake(): void {
    this.#nodes.dispatcher.wake();
  }

  cancel(call: Call, cancellation: Cancellation): void {
    this.#nodes.cancel(call, cancellation);
  }

  leave(): void {
    this.#nodes.post({ kind: 'leave' });
  }

  async close(): Promise<void> {
    this.#isOver = true;
    this.#nodes.end();
    this.#leadership.end({ phase: 'closed' }, poolClosed('cluster'));
    await this.#nodes.close();
    await this.#leadership.close();
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#nodes.end();
    this.#leadership.end({ phase: 'failed', cause: error.message }, error);
    this.#nodes.servers.fail(error);
    this.#host.failed(error);
    this.#host.changed();
    this.#nodes.post({ kind: 'end', isClosed: false });
  }

  // ---------------------------------------------------------------- the servers

  #subscribe(nats: NatsConnection): void {
    const { subjects, malformed, own } = this.#context;
    const listen = (subject: string, onMessage: (message: Msg) => void): void => {
      malformed.subscribe(nats, subject, onMessage);
    };
    listen(subjects.hello, ({ data }) => {
      if (this.#isOver || this.#leadership.token === undefined) return;
      if (this.#fingerprints !== undefined) this.#nodes.hello(data, this.#fingerprints);
    });
    listen(subjects.up('*'), ({ subject, data }) => this.#nodes.frame(subject, data));
    listen(subjects.stop(own.run), ({ data }) => {
      const stop = unpackStop(data);
      if (stop === undefined) malformed.drop('a stop');
      else this.#nodes.stops.hear(stop);
    });
    listen(subjects.who, ({ data, reply }) => {
      if (!this.#leadership.others.receive(data, reply)) malformed.drop('a who');
    });
    listen(subjects.report, (message) => {
      message.respond(this.#toDoctor(frameBytes(nats.info?.max_payload)));
    });
  }

  /**
   * What `allstop doctor` is told, cut to the length that the server permits: each text is cut, then
   * the number of entries is halved until the rest fits. Tasks that are not ready come first.
   */
  #toDoctor(maxBytes: number): Uint8Array {
    const { tasks, ...report } = this.report();
    const ordered = tasks.toSorted((one, other) => Number(one.ready) - Number(other.ready));
    const turnedAway = this.#nodes.refused.all;
    const work = this.#work();
    const stop = attachmentOf(this.#host.coordinator).errors.record(false);
    const cut = (_name: string, value: unknown): unknown =>
      typeof value === 'string' ? value.slice(0, MAX_TEXT) : value;
    for (let count = MAX_ENTRIES; ; count = Math.floor(count / 2)) {
      const told: CoordinatorReport = {
        run: this.#context.own.run,
        report: { ...report, tasks: ordered.slice(0, count) },
        leftOff: Math.max(0, tasks.length - count),
        turnedAway: turnedAway.slice(0, count),
        dropped: this.#context.malformed.count,
        ...(stop !== undefined && { stop: stopOf(stop) }),
        work: {
          ...work,
          running: work.running.slice(0, count),
          failures: work.failures.slice(0, count),
        },
      };
      const bytes = Buffer.from(JSON.stringify(told, cut));
      if (bytes.byteLength <= maxBytes || count === 0) return bytes;
    }
  }

  #work(): WorkReport {
    return {
      ...this.#host.work(),
      running: this.workers.flatMap(({ name: worker, calls }) =>
        calls.map(({ name, startedAt }) => ({
          worker,
          name,
          ms: Date.now() - startedAt.getTime(),
        })),
      ),
    };
  }
}

/** The most tasks, and the most refused nodes, in one report. */
const MAX_ENTRIES = 1_000;
/** The longest text: the message of an error has any length. */
const MAX_TEXT = 1_000;

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
