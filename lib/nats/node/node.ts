/**
 * A node: the process of `allstop worker`. It serves the runs of a cluster, one after the other,
 * each in a session (node-session.ts). Its main thread only speaks with the servers, so that a
 * function that never returns does not make the node look dead.
 */

import { randomUUID } from 'node:crypto';
import { availableParallelism, freemem, hostname, loadavg, networkInterfaces } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { attempt } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import type { ClusterSpec } from '../../cluster/cluster-spec.ts';
import type { StopMessage } from '../../coordinator/stop-relay.ts';
import { ignored } from '../../errors/phases.ts';
import { moduleFingerprint } from '../../pool/worker/module.ts';
import { Connection } from '../connection/connection.ts';
import { explainFailure } from '../connection/connection-failure.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import {
  amountOf,
  FURTHEST_TOKEN,
  json,
  MOST_ADDRESSES,
  type NodeInfo,
  PROTOCOL,
  parseControl,
  RUNTIME,
  specFingerprint,
  type Vitals,
  type Welcome,
} from '../wire/control-messages.ts';
import { frameBytes } from '../wire/reliable-channel.ts';
import { packStop, unpackStop } from '../wire/session-messages.ts';
import { MalformedMessages, Subjects } from '../wire/subjects.ts';
import {
  type CallOutcome,
  type NodeEvent,
  NodeSession,
  type ServingOptions,
} from './node-session.ts';

// How well the node's process does: read when a probe comes.

const RESOLUTION_MS = 20;

class NodeVitals {
  /** Undefined where the runtime cannot measure it. */
  readonly #delay = attempt(() => {
    const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    delay.enable();
    return delay;
  });

  /** The longest delay of the event loop since the last call, the load and the free memory now. */
  read(): Vitals {
    const vitals: Vitals = { load: loadavg()[0] ?? 0, freeMemory: freemem() };
    const longestMs = (this.#delay?.max ?? 0) / 1e6;
    if (this.#delay !== undefined && this.#delay.count > 0) {
      vitals.loopDelayMs = Math.max(0, longestMs - RESOLUTION_MS);
    }
    this.#delay?.reset();
    return vitals;
  }

  close(): void {
    this.#delay?.disable();
  }
}

const HELLO_MS = 1_000;
/** How often a node that is in a session says hello to another run that does not answer. */
const MOST_HELLOS = 30;
/** Delay of the hello after a session without a living thread: the next import may succeed. */
const FAILED_HELLO_MS = 5_000;
/**
 * A coordinator is gone if we are connected and it has sent no probe for this time, and for no
 * less than its `unavailableAfterMs`.
 */
const LEAST_SILENT_MS = 30_000;
/** How often a node looks whether its coordinator is gone. */
const LOOK_MS = 1_000;
/**
 * A node that leaves waits for the coordinator to end its session. If the node has had neither
 * functions nor results for this time, the coordinator must be gone, and the node leaves by itself.
 */
const LEAVE_IDLE_MS = 2_000;
/** As LEAVE_IDLE_MS, for a node that had functions when it was told to leave. */
const LEAVE_BUSY_MS = 10_000;
/** A cause of a disconnection that was met within this time is not told again. */
const SAME_CAUSE_MS = 60_000;

/** `setup` and `teardown`: those of this machine, instead of the coordinator's. */
export type ClusterNodeOptions = ServingOptions & {
  cluster: string;
  connection: NatsConnectionOptions;
  /** Undefined: the coordinator chooses. */
  task: number | undefined;
  /** If given, the node serves only coordinators that expect an equal ClusterSpec. */
  spec: ClusterSpec | undefined;
  /** Compared with the coordinator's instead of the module file's hash: a git hash, for example. */
  definition: string | undefined;
  /** What the node has, for functions that need it. */
  resources?: Record<string, number> | undefined;
  version: string;
};

export type { CallOutcome, NodeEvent };

/**
 * The addresses and names by which a ClusterSpec may name this machine, besides its host name: as
 * many as a hello may have. The first of each network interface go before the second ones, so that
 * one with thousands (kube-proxy's, in IPVS mode) leaves the others theirs.
 */
function ownAddresses(): string[] {
  const found = Object.values(networkInterfaces()).flatMap((each = []) =>
    each.map(({ address }, at) => ({ address, at })),
  );
  const sorted = found.toSorted((one, other) => one.at - other.at);
  return ['localhost', ...sorted.map(({ address }) => address)].slice(0, MOST_ADDRESSES);
}

export class ClusterNode {
  readonly #options: ClusterNodeOptions;
  readonly #subjects: Subjects;
  readonly #id = randomUUID();
  readonly #connection: Connection;
  /** The token of the newest run that this node has heard of; older runs are ignored. */
  #token = 0;
  #current:
    | { id: string; run: string; task: number; session: NodeSession; unsubscribe: () => void }
    | undefined;
  /** A stop that the last session reported, and the coordinator did not answer. */
  #unansweredStop: { run: string; stop: StopMessage } | undefined;
  /** A run that has asked who is there, and has not answered this node's `hellos`. */
  #asking: { run: string; hellos: number } | undefined;
  #leaving: NodeJS.Timeout | undefined;
  #hello: Timer | undefined;
  #silence: NodeJS.Timeout | undefined;
  /** For how long the node has looked and heard of no probe of its session. */
  #silentMs = 0;
  #lastEvent = '';
  /** When each cause of the present disconnection was met last, in `performance.now()`. */
  readonly #causes = new Map<string, number>();
  #isLeaving = false;
  #onLeft: (() => void) | undefined;
  #onFailed: ((error: Error) => void) | undefined;
  /** Resolves when no worker thread lives here: the module cannot be imported, for example. */
  readonly failed: Promise<Error> = new Promise((resolve) => {
    this.#onFailed = resolve;
  });
  readonly #malformed: MalformedMessages;
  readonly #vitals = new NodeVitals();

  constructor(options: ClusterNodeOptions) {
    this.#options = options;
    this.#malformed = new MalformedMessages('A worker', options.cluster);
    this.#subjects = new Subjects(options.cluster);
    const name = `allstop ${options.cluster} worker`;
    this.#connection = new Connection(name, this.#subjects.inbox('worker'), options.connection, {
      onUp: (nats) => this.#onUp(nats),
      onDown: (cause, servers) => {
        this.#hello?.clear();
        this.#tellDown({ event: 'disconnected', ...explainFailure(cause, servers) });
      },
      onRefused: (error, server) => {
        // After any other error the connection ends, and onDown tells why.
        if (error.name !== 'PermissionViolationError') return;
        this.#tell({ event: 'forbidden', ...explainFailure(error, server) });
      },
    });
  }

  /** How many functions the node has that have not ended. */
  get running(): number {
    return this.#current?.session.calls.size ?? 0;
  }

  /** Whether the coordinator has not acknowledged all results of the node. */
  get hasResults(): boolean {
    return this.#current?.session.hasResults === true;
  }

  /** Takes no more functions. Resolves when the functions that run or are queued here are done. */
  leave(): Promise<void> {
    if (this.#isLeaving) return Promise.resolve();
    this.#isLeaving = true;
    this.#hello?.clear();
    const { session } = this.#current ?? {};
    if (session === undefined) return Promise.resolve();
    const hadWork = session.calls.size > 0 || session.hasResults;
    session.leave(); // the coordinator ends the session: functions may be on their way here
    return new Promise((resolve) => {
      this.#onLeft = resolve;
      this.#watchLeaving(session, hadWork, resolve);
    });
  }

  /**
   * Calls `go` when the coordinator must be gone. A result that is not acknowledged waits for as
   * long as the coordinator may be away; each frame that is acknowledged begins the wait anew.
   */
  #watchLeaving(session: NodeSession, hadWork: boolean, go: () => void): void {
    const { channel } = session;
    let acknowledged = channel.acknowledged;
    let idleMs = 0;
    const patienceMs = (): number => {
      if (!hadWork) return LEAVE_IDLE_MS;
      if (!session.hasResults) return LEAVE_BUSY_MS;
      return Math.max(LEAVE_BUSY_MS, session.unavailableAfterMs);
    };
    this.#leaving = setInterval(() => {
      const isIdle = session.calls.size === 0 && channel.acknowledged === acknowledged;
      acknowledged = channel.acknowledged;
      idleMs = isIdle ? idleMs + LEAVE_IDLE_MS : 0;
      if (idleMs >= patienceMs()) go();
    }, LEAVE_IDLE_MS);
  }

  async close(): Promise<void> {
    this.#isLeaving = true;
    this.#hello?.clear();
    this.#vitals.close();
    clearInterval(this.#leaving);
    this.#sayBye();
    await this.#end('this worker ends');
    await this.#connection.close();
    clearInterval(this.#silence); // at last: until here a new connection begins the watch again
  }

  /** As `close`, but waits for no thread: to be called before the process ends. */
  async abandon(): Promise<void> {
    this.#sayBye();
    await this.#connection.close();
  }

  #sayBye(): void {
    if (this.#current === undefined) return;
    const bye = { kind: 'bye', node: this.#id, session: this.#current.id };
    this.#connection.publish(this.#subjects.hello, json(bye));
  }

  #tell(event: NodeEvent): void {
    const text = JSON.stringify(event);
    if (text === this.#lastEvent) return; // each failed attempt to connect repeats the event
    this.#lastEvent = text;
    this.#options.onEvent(event);
  }

  /** Of several servers that fail in turn, each is told once, not at each attempt. */
  #tellDown(event: NodeEvent & { event: 'disconnected' }): void {
    const { cause } = event;
    const now = performance.now();
    const before = this.#causes.get(cause) ?? Number.NEGATIVE_INFINITY;
    this.#causes.set(cause, now);
    const hasOthers = this.#options.connection.servers.length > 1;
    if (!hasOthers || now - before > SAME_CAUSE_MS) this.#tell(event);
  }

  /** Of the module file as it is: the file may change while the node lives. */
  #fingerprint(): string {
    return moduleFingerprint(this.#options.module, this.#options.definition);
  }

  #info(): NodeInfo {
    const { job, task, spec, slots, resources, version } = this.#options;
    return {
      protocol: PROTOCOL,
      node: this.#id,
      job,
      ...(task !== undefined && { task }),
      slots,
      ...(resources !== undefined && { resources }),
      definition: this.#fingerprint(),
      ...(spec !== undefined && { spec: specFingerprint(spec) }),
      host: hostname(),
      addresses: ownAddresses(),
      pid: process.pid,
      version,
      runtime: RUNTIME,
      freeMemory: freemem(),
      cores: availableParallelism(),
      ...(this.#current !== undefined && { session: this.#current.id }),
      ...(this.#malformed.count > 0 && { dropped: this.#malformed.count }),
    };
  }

  #onUp(nats: NatsConnection): void {
    this.#subscribe(nats);
    this.#causes.clear();
    const { job, cluster } = this.#options;
    const place = this.#current === undefined ? {} : { job, task: this.#current.task };
    this.#tell({ event: 'connected', cluster, ...place });
    const channel = this.#current?.session.channel;
    if (channel?.fits(nats.info?.max_payload) === false) {
      void this.#end(
        "messages on their way are longer than the server's max_payload, which was lowered",
      );
    }
    channel?.resume();
    this.#sayHello();
    this.#watchSilence();
  }

  #subscribe(nats: NatsConnection): void {
    this.#malformed.subscribe(nats, this.#subjects.who, (message) => {
      const who = parseControl(message.data, 'who', 'ask', 'alive');
      if (who === undefined) this.#malformed.drop('a who');
      else if (who.kind !== 'who')
        return; // between coordinators
      else if (message.reply !== undefined && message.reply !== '') {
        message.respond(json({ kind: 'hello', info: this.#info() }));
      } else if (who.token >= this.#token) {
        this.#asking = { run: who.run, hellos: 0 };
        this.#sayHello();
      }
    });
    this.#malformed.subscribe(nats, this.#subjects.node(this.#id), (message) =>
      this.#onControl(message),
    );
    this.#listen(nats);
  }

  /**
   * Repeats the hello until a coordinator has begun a session. In a session, too, if a newer run
   * has asked: it may have dropped the hello, and the coordinator of the session may be dead.
   */
  #sayHello(): void {
    if (this.#isLeaving) return;
    this.#hello?.clear();
    if (this.#asking?.run === this.#current?.run) this.#asking = undefined;
    if (this.#asking !== undefined && ++this.#asking.hellos > MOST_HELLOS) this.#asking = undefined;
    const hello = json({ kind: 'hello', info: this.#info() });
    this.#connection.publish(this.#subjects.hello, hello);
    const most = this.#connection.nats?.info?.max_payload ?? Number.POSITIVE_INFINITY;
    if (hello.byteLength > most) {
      const cause = `the message by which a worker joins is longer than the server's max_payload of ${most} bytes`;
      const remedy = 'raise `max_payload` of the server (1MB is usual)';
      this.#tell({ event: 'too-long', cause, remedy });
    }
    this.#hello = new Timer(HELLO_MS, () => {
      if (this.#current === undefined || this.#asking !== undefined) this.#sayHello();
    });
  }

  #onControl(message: Msg): void {
    const control = parseControl(message.data, 'welcome', 'refused', 'probe');
    if (control === undefined) {
      this.#malformed.drop('a message of the coordinator');
      return;
    }
    if (control.kind === 'probe') {
      this.#token = Math.max(this.#token, control.token);
      const session = this.#current?.id ?? null;
      if (session === control.session) this.#silentMs = 0;
      message.respond(json({ session, token: this.#token, vitals: this.#vitals.read() }));
      return;
    }
    const behind = this.#token - control.token;
    if (behind > 0) {
      // From an older run. It raises its token, unless it is too far behind.
      if (behind > FURTHEST_TOKEN) this.#tell({ event: 'ignored', ...ignored(behind) });
      return;
    }
    this.#token = control.token;
    if (control.run === this.#asking?.run) this.#asking = undefined;
    if (control.kind === 'refused') {
      this.#tell({ event: 'refused', phase: control.phase, why: control.why });
    } else if (control.session !== this.#current?.id) this.#begin(control);
  }

  #begin(welcome: Welcome): void {
    if (this.#isLeaving) return;
    const { run, session: id, task, definition } = welcome;
    const { nats } = this.#connection;
    if (nats === undefined) return; // the welcome will be repeated
    const isSameRun = run === this.#current?.run;
    void this.#end(
      isSameRun
        ? 'the program has begun a new session with this worker'
        : 'the program has been started again, or another program has taken over the cluster',
    );
    const { job, setup = welcome.setup, teardown = welcome.teardown } = this.#options;
    const subject = this.#subjects.up(id);
    const session = new NodeSession(
      {
        ...this.#options,
        setup,
        teardown,
        run,
        task,
        cancelGraceMs: amountOf(welcome.cancelGraceMs),
        retries: amountOf(welcome.retries),
        unavailableAfterMs: amountOf(welcome.unavailableAfterMs),
        maxFrameBytes: frameBytes(nats.info?.max_payload),
        hasModule: () => this.#fingerprint() === definition,
      },
      {
        send: (frame) => this.#connection.publish(subject, frame),
        broadcast: (stop) => {
          this.#connection.publish(this.#subjects.stop(run), packStop(stop));
          this.#connection.flush();
        },
        tell: (event) => this.#tell(event),
        onMalformed: () => {
          this.#malformed.drop('a message of a session');
          // A third client has used the number of a frame: the coordinator's own frame with that
          // number will be dropped as a copy. Only a new session helps.
          if (this.#current?.id === id) void this.#end('a message of the session was malformed');
        },
        onEnd: (why) => void this.#end(why),
        onFailed: (error) => void this.#fail(session, error),
      },
    );
    this.#current = { id, run, task, session, unsubscribe: () => {} };
    this.#listen(nats);
    if (this.#unansweredStop?.run === run) session.stops.resume(this.#unansweredStop.stop);
    this.#silentMs = 0;
    this.#tell({ event: 'session', job, task, run });
  }

  /** Subscribes to the subjects of the current session. */
  #listen(nats: NatsConnection): void {
    const current = this.#current;
    if (current === undefined) return;
    const { id, run, session } = current;
    const subscriptions = [
      this.#malformed.subscribe(nats, this.#subjects.down(id), ({ data }) => {
        if (this.#current !== current) return;
        if (data.length === 0) void this.#end('the coordinator has given this worker up');
        else if (!session.channel.receive(data)) this.#malformed.drop('a frame');
      }),
      this.#malformed.subscribe(nats, this.#subjects.stop(run), ({ data }) => {
        if (this.#current !== current) return;
        const stop = unpackStop(data);
        if (stop === undefined) this.#malformed.drop('a stop');
        else session.stops.hearBroadcast(stop);
      }),
    ];
    current.unsubscribe = () => {
      for (const subscription of subscriptions) subscription.unsubscribe();
    };
  }

  /** Resolves `failed`, but first waits until the coordinator has acknowledged the error. */
  async #fail(session: NodeSession, error: Error): Promise<void> {
    await session.channel.drained();
    this.#onFailed?.(error);
  }

  async #end(why: string): Promise<void> {
    const current = this.#current;
    if (current === undefined) return;
    this.#current = undefined;
    const stop = current.session.stops.unanswered;
    this.#unansweredStop = stop && { run: current.run, stop };
    current.unsubscribe();
    this.#tell({ event: 'session-over', why });
    await current.session.close();
    this.#onLeft?.();
    if (this.#isLeaving || this.#current !== undefined) return;
    const ms = current.session.hasFailed ? FAILED_HELLO_MS : 0;
    this.#hello?.clear();
    this.#hello = new Timer(ms, () => this.#sayHello());
  }

  /** Counts looks, not the time: a node that was stopped itself has heard nothing meanwhile. */
  #watchSilence(): void {
    clearInterval(this.#silence);
    this.#silentMs = 0;
    this.#silence = setInterval(() => {
      if (this.#connection.nats === undefined) return;
      this.#silentMs += LOOK_MS;
      const { session } = this.#current ?? {};
      const patienceMs = Math.max(LEAST_SILENT_MS, session?.unavailableAfterMs ?? 0);
      if (session !== undefined && this.#silentMs >= patienceMs) {
        void this.#end(`the coordinator has sent no probe for ${patienceMs / 1_000} s`);
      }
    }, LOOK_MS);
  }
}
