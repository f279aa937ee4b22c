/**
 * Holds the cluster for one run: keeps a connection to the servers, and the cluster's key
 * (fence.ts). A run that has held the cluster once goes on with the next connection before the
 * key is checked again, since JetStream may have no leader for a while.
 */

import type { NatsConnection } from '@nats-io/transport-node';
import { Timer, within } from '../../base/timer.ts';
import { FailedPreconditionError, UnavailableError } from '../../errors/errors.ts';
import type { Explanation } from '../../errors/phases.ts';
import type { EngineReadiness } from '../../errors/readiness-report.ts';
import { Connection } from '../connection/connection.ts';
import { explainFailure, failureOfJetStream } from '../connection/connection-failure.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import { FURTHEST_TOKEN } from '../wire/control-messages.ts';
import type { Fence } from './fence.ts';

const RETRY_MS = 1_000;
/** How long to wait for a newer run to answer a `who`. */
const RIVAL_MS = 1_500;
/** How long to wait until JetStream has stored that the run has ended. */
const RELEASE_MS = 1_000;

export interface LeadershipListener {
  /** There is a new connection, without subscriptions yet. */
  onConnection(nats: NatsConnection): void;
  /** This run holds the cluster: nodes may be sent messages over this connection. */
  onHeld(nats: NatsConnection): void;
  onDown(): void;
  /** This run does not hold the cluster, and never will again. */
  onLost(error: Error): void;
  /** The server refuses a subject. */
  onRefused(error: Error): void;
  /** A newer run may be alive. The listener asks by a `who`; a reply goes to `doubt`. */
  onDoubt(): void;
  /** `state` has changed. */
  onChange(): void;
}

export class Leadership {
  readonly connection: Connection;
  readonly #fence: Fence;
  readonly #unavailableAfterMs: number;
  readonly #listener: LeadershipListener;
  #state: EngineReadiness = { phase: 'connecting' };
  /** The server refuses a subject that the coordinator needs. */
  #forbidden: Explanation | undefined;
  #unavailable: Timer | undefined;
  #retry: Timer | undefined;
  #stopAsking: (() => void) | undefined;
  #isHolding = false;
  /** The greatest token that any message has named. */
  #heard = 0;
  /** The greatest token that another run has named as its own. */
  #rival = 0;
  #isOver = false;
  /** How many connections there have been. */
  connections = 0;

  constructor(
    fence: Fence,
    unavailableAfterMs: number,
    connect: { name: string; inboxPrefix: string; options: NatsConnectionOptions },
    listener: LeadershipListener,
  ) {
    this.#fence = fence;
    this.#unavailableAfterMs = unavailableAfterMs;
    this.#listener = listener;
    this.#watchUnavailable();
    this.connection = new Connection(connect.name, connect.inboxPrefix, connect.options, {
      onUp: (nats) => this.#onUp(nats),
      onDown: (cause, servers) => this.#onDown(cause, servers),
      onRefused: (error, server) => this.#onRefused(error, server),
    });
  }

  /** Our token; undefined until this run has held the cluster for the first time. */
  get token(): number | undefined {
    return this.#fence.token;
  }

  get state(): EngineReadiness {
    if (this.#forbidden === undefined || this.#isOver) return this.#state;
    return { phase: 'forbidden', ...this.#forbidden };
  }

  /**
   * Called when a message names the token of another run; `isItself`: that run has sent it. If the
   * token is greater than ours, the key is read again, which alone decides (unless JetStream has
   * lost the key). If this run still holds the cluster, our token is raised above the other one,
   * because nodes that remember the other token would ignore us.
   */
  doubt(token: number, isItself = false): void {
    const { nats } = this.connection;
    const own = this.token;
    if (nats === undefined || own === undefined) return;
    if (token <= own || this.tooFarBy(token) > 0) return;
    this.#heard = Math.max(this.#heard, token);
    if (isItself) {
      this.#rival = Math.max(this.#rival, token);
      this.#stopAsking?.();
    }
    void this.#hold(nats);
  }

  /**
   * How far a token is ahead of ours that `doubt` ignores, because it is forged, or because the clock
   * of this machine is behind; 0: `doubt` does not ignore it.
   */
  tooFarBy(token: number): number {
    const ahead = token - (this.token ?? token);
    return ahead > FURTHEST_TOKEN ? ahead : 0;
  }

  /** Ends the run, with its last state. The connection stays until `close()`. */
  end(state: EngineReadiness): void {
    this.#isOver = true;
    this.#state = state;
    this.#unavailable?.clear();
    this.#retry?.clear();
    this.#stopAsking?.();
  }

  /** Called after `end`: notes the end in the cluster's key, if that is possible, and disconnects. */
  async close(): Promise<void> {
    const { nats } = this.connection;
    if (nats !== undefined) {
      const released = this.#fence.release(nats).catch(() => undefined);
      await within(RELEASE_MS, released, () => undefined);
    }
    await this.connection.close();
  }

  #enter(state: EngineReadiness): void {
    const { phase, cause } = this.#state;
    // Each failed attempt to connect sets the same state again.
    if (state.phase === 'connecting' && phase === state.phase && cause === state.cause) return;
    this.#state = state;
    this.#listener.onChange();
  }

  #watchUnavailable(): void {
    this.#unavailable ??= new Timer(this.#unavailableAfterMs, () => {
      const { cause, remedy } = this.#state;
      const hint = remedy === undefined ? '' : `. What to do: ${remedy}`;
      const why = cause === undefined ? '' : `: ${cause}${hint}`;
      const text = `The NATS servers were not available for ${this.#unavailableAfterMs} ms${why}`;
      this.#listener.onLost(new UnavailableError(text));
    });
  }

  #onUp(nats: NatsConnection): void {
    if (this.#isOver) return;
    this.connections += 1;
    this.#forbidden = undefined;
    this.#listener.onConnection(nats);
    if (this.token === undefined) this.#enter({ phase: 'jetstream' });
    else this.#onHeld(nats);
    void this.#hold(nats);
  }

  #onDown(cause: unknown, servers: string): void {
    if (this.#isOver) return;
    this.#retry?.clear();
    this.#watchUnavailable();
    this.#listener.onDown();
    if (cause instanceof UnavailableError) this.#listener.onLost(cause);
    else this.#enter({ phase: 'connecting', ...explainFailure(cause, servers) });
  }

  #onRefused(error: Error, server: string): void {
    this.#listener.onRefused(error);
    if (error.name !== 'PermissionViolationError') return;
    // Every subject is needed, so any missing permission keeps the cluster from being ready.
    this.#forbidden = explainFailure(error, server);
    this.#listener.onChange();
  }

  /** Writes or checks the key, then tells the listener whether this run holds the cluster. */
  async #hold(nats: NatsConnection): Promise<void> {
    if (this.#isHolding) return;
    this.#isHolding = true;
    const heard = this.#heard;
    try {
      const before = this.token;
      const token = await this.#fence.hold(nats, heard, () => this.#hasRival());
      const isKnown = this.#state.phase === 'ready' && token === before;
      if (!this.#isOver && this.connection.nats === nats && !isKnown) this.#onHeld(nats);
    } catch (error) {
      if (!this.#isOver) this.#onNotHeld(nats, error);
    } finally {
      this.#isHolding = false;
      // While the key was read, a new connection or a message with a greater token may have come.
      const { nats: now } = this.connection;
      const isOutdated = now !== nats || this.#heard > heard;
      if (now !== undefined && isOutdated && !this.#isOver) void this.#hold(now);
    }
  }

  /** Whether a newer run is alive, whose key JetStream has lost. */
  async #hasRival(): Promise<boolean> {
    const isAlive = (): boolean => this.#rival > (this.token ?? 0);
    if (isAlive()) return true;
    this.#listener.onDoubt();
    const asked = new Promise<void>((resolve) => {
      this.#stopAsking = resolve;
    });
    await within(RIVAL_MS, asked, () => {});
    // After `end`, answers as if there were a rival, so that this run does not write the key again.
    return this.#isOver || isAlive();
  }

  #onNotHeld(nats: NatsConnection, error: unknown): void {
    if (error instanceof FailedPreconditionError || error instanceof UnavailableError) {
      this.#listener.onLost(error);
      return;
    }
    if (this.connection.nats !== nats) return;
    if (this.#state.phase !== 'ready') {
      const why = explainFailure(failureOfJetStream(error), nats.getServer());
      this.#enter({ phase: 'jetstream', ...why });
    }
    this.#retry?.clear();
    this.#retry = new Timer(RETRY_MS, () => {
      if (this.connection.nats === nats) void this.#hold(nats);
    });
  }

  #onHeld(nats: NatsConnection): void {
    this.#unavailable?.clear();
    this.#unavailable = undefined;
    this.#enter({ phase: 'ready' });
    this.#listener.onHeld(nats);
  }
}
