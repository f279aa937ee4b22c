/**
 * A process that runs functions for the coordinators of a cluster, one run after the other:
 * what `allstop worker` is. Its own thread does nothing but speak with the servers, so that
 * functions which compute for ever do not make it look dead.
 */

import { randomUUID } from 'node:crypto';
import { availableParallelism, freemem, hostname, networkInterfaces } from 'node:os';
import { debuglog } from 'node:util';
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { messageOf } from '../../../base/thrown-value.ts';
import { Timer } from '../../../base/timer.ts';
import type { ClusterSpec } from '../../cluster-spec.ts';
import { applyStop, type StopMessage } from '../../worker/stop-relay.ts';
import { Connection } from '../connection/connection.ts';
import { explainFailure } from '../connection/connection-failure.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import {
  json,
  type NodeInfo,
  PROTOCOL,
  parseControl,
  RUNTIME,
  type Welcome,
} from '../wire/control-messages.ts';
import { moduleFingerprint, specFingerprint } from '../wire/fingerprints.ts';
import { frameBytes } from '../wire/reliable-channel.ts';
import { packStop, unpackStop } from '../wire/session-messages.ts';
import { Subjects } from '../wire/subjects.ts';
import { subscriptionCallback } from '../wire/subscription.ts';
import { NodeSession } from './node-session.ts';

const log = debuglog('allstop');

const HELLO_MS = 1_000;
/** A module that cannot be imported is tried again, in case that its surroundings are mended. */
const FAILED_MS = 5_000;
/** A coordinator that has not asked for so long, while we are connected, is gone. */
const SILENT_MS = 30_000;
/** A coordinator lets a node go that has nothing to do; if it does not, it is gone itself. */
const LET_GO_MS = 2_000;
/** Results that nobody hears are worth waiting a little longer: they took somebody's time. */
const UNHEARD_MS = 10_000;

export type ClusterNodeOptions = {
  module: URL;
  cluster: string;
  connection: NatsConnectionOptions;
  job: 'worker' | 'ps';
  task: number | undefined;
  /** Of the cluster, as far as this machine knows. */
  spec: ClusterSpec | undefined;
  slots: number;
  version: string;
  /** What has happened, for people. */
  onEvent(event: NodeEvent): void;
};

export type NodeEvent =
  | { event: 'connected'; cluster: string }
  | { event: 'disconnected'; cause: string; remedy: string }
  | { event: 'forbidden'; cause: string; remedy: string }
  | { event: 'refused'; phase: string; why: string }
  | { event: 'session'; job: string; task: number; run: string }
  | { event: 'session-over'; why: string };

export class ClusterNode {
  readonly #options: ClusterNodeOptions;
  readonly #subjects: Subjects;
  readonly #id = randomUUID();
  readonly #connection: Connection;
  #definition: string;
  /** Of the newest run that we have heard of. */
  #token = 0;
  #current: { id: string; run: string; session: NodeSession; unsubscribe: () => void } | undefined;
  /** A stop of the last session's, which its coordinator may never have heard of. */
  #unheard: { run: string; stop: StopMessage } | undefined;
  #lettingGo: Timer | undefined;
  #hello: Timer | undefined;
  #silence: Timer | undefined;
  #heardAt = 0;
  #told = '';
  #isLeaving = false;
  #onLeft: (() => void) | undefined;
  #onFailed: ((error: Error) => void) | undefined;
  /** Resolves when nothing can be run here: the module cannot be imported, for example. */
  readonly failed: Promise<Error> = new Promise((resolve) => {
    this.#onFailed = resolve;
  });
  #malformed = 0;

  static async start(options: ClusterNodeOptions): Promise<ClusterNode> {
    return new ClusterNode(options, await moduleFingerprint(options.module));
  }

  private constructor(options: ClusterNodeOptions, definition: string) {
    this.#options = options;
    this.#definition = definition;
    this.#subjects = new Subjects(options.cluster);
    const name = `allstop ${options.cluster} worker`;
    this.#connection = new Connection(name, this.#subjects.inbox('worker'), options.connection, {
      onUp: (nats) => this.#onUp(nats),
      onDown: (cause) => {
        this.#hello?.clear();
        this.#tell({ event: 'disconnected', ...explainFailure(cause) });
      },
      onRefused: (error) => {
        if (error.name !== 'PermissionViolationError') return; // the connection ends, and says so
        this.#tell({ event: 'forbidden', ...explainFailure(error) });
      },
    });
  }

  /** How many functions it has. */
  get running(): number {
    return this.#current?.session.running ?? 0;
  }

  /** Takes nothing more. Resolves when what it has is done. */
  leave(): Promise<void> {
    if (this.#isLeaving) return Promise.resolve();
    this.#isLeaving = true;
    this.#hello?.clear();
    const { session } = this.#current ?? {};
    if (session === undefined) return Promise.resolve();
    session.leave(); // something may be on its way here
    return new Promise((resolve) => {
      this.#onLeft = resolve;
      this.#watchLeaving(session, session.running > 0 ? UNHEARD_MS : LET_GO_MS, resolve);
    });
  }

  /** Who would let it go may be gone: it has been done for so long, and goes by itself. */
  #watchLeaving(session: NodeSession, patienceMs: number, go: () => void): void {
    let doneMs = 0;
    const look = (): void => {
      doneMs = session.running === 0 ? doneMs + LET_GO_MS : 0;
      if (doneMs >= patienceMs) go();
      else this.#lettingGo = new Timer(LET_GO_MS, look);
    };
    this.#lettingGo = new Timer(LET_GO_MS, look);
  }

  async close(): Promise<void> {
    this.#isLeaving = true;
    this.#hello?.clear();
    this.#silence?.clear();
    this.#lettingGo?.clear();
    await this.#end('the worker ends');
    await this.#connection.close();
  }

  #tell(event: NodeEvent): void {
    const text = JSON.stringify(event);
    if (text === this.#told) return; // again, and again
    this.#told = text;
    this.#options.onEvent(event);
  }

  #info(): NodeInfo {
    const { job, task, spec, slots, version } = this.#options;
    const addresses = Object.values(networkInterfaces()).flatMap((each) =>
      (each ?? []).map(({ address }) => address),
    );
    return {
      protocol: PROTOCOL,
      node: this.#id,
      job,
      ...(task !== undefined && { task }),
      slots,
      definition: this.#definition,
      ...(spec !== undefined && { spec: specFingerprint(spec) }),
      host: hostname(),
      addresses: ['localhost', ...addresses],
      pid: process.pid,
      version,
      runtime: RUNTIME,
      freeMemory: freemem(),
      cores: availableParallelism(),
      ...(this.#current !== undefined && { session: this.#current.id }),
      ...(this.#malformed > 0 && { dropped: this.#malformed }),
    };
  }

  #onUp(nats: NatsConnection): void {
    this.#subscribe(nats);
    this.#tell({ event: 'connected', cluster: this.#options.cluster });
    const channel = this.#current?.session.channel;
    if (channel?.fits(nats.info?.max_payload) === false) {
      void this.#end('its messages are too long for the server now');
    }
    channel?.resume();
    this.#sayHello();
    this.#watchSilence();
  }

  #subscribe(nats: NatsConnection): void {
    this.#on(nats, this.#subjects.who, (message) => {
      const who = parseControl(message.data, 'who');
      if (who === undefined) this.#onMalformed();
      else if (message.reply !== undefined && message.reply !== '') {
        message.respond(json({ kind: 'hello', info: this.#info() }));
      } else if (who.token >= this.#token) this.#sayHello();
    });
    this.#on(nats, this.#subjects.node(this.#id), (message) => this.#onControl(message));
    this.#listen(nats);
  }

  #on(nats: NatsConnection, subject: string, onMessage: (message: Msg) => void): Subscription {
    const callback = subscriptionCallback(onMessage, (error) => {
      log('a message of %s: %s', subject, messageOf(error));
      this.#onMalformed();
    });
    return nats.subscribe(subject, { callback });
  }

  /** Says that it is there, until a coordinator has answered. */
  #sayHello(): void {
    if (this.#isLeaving) return;
    this.#hello?.clear();
    this.#connection.publish(this.#subjects.hello, json({ kind: 'hello', info: this.#info() }));
    this.#hello = new Timer(HELLO_MS, () => {
      if (this.#current === undefined) this.#sayHello();
    });
  }

  #onControl(message: Msg): void {
    const control = parseControl(message.data, 'welcome', 'refused', 'probe');
    if (control === undefined) {
      this.#onMalformed();
      return;
    }
    if (control.kind === 'probe') {
      this.#token = Math.max(this.#token, control.token);
      const session = this.#current?.id ?? null;
      if (session === control.session) this.#heardAt = performance.now();
      message.respond(json({ session, token: this.#token }));
      return;
    }
    if (control.token < this.#token) return; // of an older run
    this.#token = control.token;
    if (control.kind === 'refused') {
      this.#tell({ event: 'refused', phase: control.phase, why: control.why });
    } else if (control.session !== this.#current?.id) this.#begin(control);
  }

  #begin(welcome: Welcome): void {
    if (this.#isLeaving) return;
    const { run, session: id, task, cancelGraceMs, unavailableAfterMs } = welcome;
    const { nats } = this.#connection;
    if (nats === undefined) return; // it will be repeated
    void this.#end('another has begun');
    const { module, job, slots } = this.#options;
    const subject = this.#subjects.up(id);
    const session = new NodeSession({
      module,
      job,
      task,
      slots,
      cancelGraceMs,
      unavailableAfterMs,
      maxFrameBytes: frameBytes(nats.info?.max_payload),
      send: (frame) => this.#connection.publish(subject, frame),
      broadcast: (stop) => {
        this.#connection.publish(this.#subjects.stop(run), packStop(stop));
        this.#connection.flush();
      },
      onMalformed: () => {
        this.#onMalformed();
        // It was in the place of another, which is lost.
        if (this.#current?.id === id) void this.#end('a message of the coordinator is none');
      },
      onEnd: () => void this.#end('the coordinator has ended it'),
      onFailed: (error) => void this.#fail(session, error),
    });
    this.#current = { id, run, session, unsubscribe: () => {} };
    this.#listen(nats);
    if (this.#unheard?.run === run) applyStop(session.coordinator, this.#unheard.stop);
    this.#heardAt = performance.now();
    this.#tell({ event: 'session', job, task, run });
  }

  #listen(nats: NatsConnection): void {
    const current = this.#current;
    if (current === undefined) return;
    const { id, run, session } = current;
    const subscriptions = [
      this.#on(nats, this.#subjects.down(id), ({ data }) => {
        if (this.#current !== current) return;
        if (data.length === 0) void this.#end('the coordinator has given it up');
        else if (!session.channel.receive(data)) this.#onMalformed();
      }),
      this.#on(nats, this.#subjects.stop(run), ({ data }) => {
        if (this.#current !== current) return;
        const stop = unpackStop(data);
        if (stop === undefined) this.#onMalformed();
        else session.onBroadcast(stop);
      }),
    ];
    current.unsubscribe = () => {
      for (const subscription of subscriptions) subscription.unsubscribe();
    };
  }

  /** That the coordinator is told is more important than how soon we end. */
  async #fail(session: NodeSession, error: Error): Promise<void> {
    await session.channel.drained();
    this.#onFailed?.(error);
  }

  async #end(why: string): Promise<void> {
    const current = this.#current;
    if (current === undefined) return;
    this.#current = undefined;
    const stop = current.session.unheardStop;
    this.#unheard = stop && { run: current.run, stop };
    current.unsubscribe();
    this.#tell({ event: 'session-over', why });
    await current.session.close();
    this.#onLeft?.();
    if (this.#isLeaving || this.#current !== undefined) return;
    const ms = current.session.hasFailed ? FAILED_MS : 0;
    this.#hello?.clear();
    this.#hello = new Timer(ms, () => this.#sayHello());
  }

  #watchSilence(): void {
    this.#silence?.clear();
    this.#heardAt = performance.now();
    const look = (): void => {
      if (this.#connection.nats === undefined) return;
      const silentMs = performance.now() - this.#heardAt;
      if (this.#current !== undefined && silentMs >= SILENT_MS) {
        void this.#end('its coordinator is gone');
      }
      this.#silence = new Timer(SILENT_MS / 4, look);
    };
    this.#silence = new Timer(SILENT_MS / 4, look);
  }

  #onMalformed(): void {
    this.#malformed += 1;
    if (this.#malformed === 1) {
      const code = 'ALLSTOP_MALFORMED_MESSAGE';
      process.emitWarning('A malformed message was dropped, as others will be', { code });
    } else log('%d malformed messages were dropped', this.#malformed);
  }
}
