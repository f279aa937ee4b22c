/**
 * That the servers are there, and that the cluster is ours: connected, and the fence held.
 * Who has held it once goes on with the next connection, until the bucket says that another
 * has it: JetStream may have no leader for a while.
 */

import type { NatsConnection } from '@nats-io/transport-node';
import { Timer } from '../../../base/timer.ts';
import { FailedPreconditionError, UnavailableError } from '../../../errors/errors.ts';
import { Connection } from '../connection/connection.ts';
import {
  type Explanation,
  explainFailure,
  failureOfJetStream,
} from '../connection/connection-failure.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import type { Fence } from './fence.ts';

const RETRY_MS = 1_000;
/** Runs count from milliseconds since 1970, on clocks of several machines: 50 days. */
const FURTHEST_TOKEN = 2 ** 32;
/** A newer run that lives has answered by then. */
const RIVAL_MS = 1_500;

export interface LeadershipListener {
  /** A new connection: nothing is subscribed yet. */
  onConnection(nats: NatsConnection): void;
  /** The cluster is ours, and this is how to speak to it. */
  onHeld(nats: NatsConnection): void;
  onDown(): void;
  /** It will not be ours any more. */
  onLost(error: Error): void;
  /** The server refuses something. */
  onRefused(error: Error): void;
  /** Whoever has the cluster is to say so. */
  onDoubt(): void;
  onChange(): void;
}

export type LeadershipState = { phase: string; cause?: string; remedy?: string };

export class Leadership {
  readonly #fence: Fence;
  readonly #unavailableAfterMs: number;
  readonly #listener: LeadershipListener;
  readonly #connection: Connection;
  #state: LeadershipState = { phase: 'connecting' };
  /** The server does not permit what we need. */
  #forbidden: Explanation | undefined;
  #unavailable: Timer | undefined;
  #retry: Timer | undefined;
  #asking: Timer | undefined;
  #isHolding = false;
  /** The greatest token that anybody has spoken of. */
  #heard = 0;
  /** The greatest token of a run that lives. */
  #rival = 0;
  #isOver = false;
  /** So many there were. */
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
    this.#await();
    this.#connection = new Connection(connect.name, connect.inboxPrefix, connect.options, {
      onUp: (nats) => this.#onUp(nats),
      onDown: (cause) => this.#onDown(cause),
      onRefused: (error) => this.#onRefused(error),
    });
  }

  /** Undefined: we are not connected. */
  get nats(): NatsConnection | undefined {
    return this.#connection.nats;
  }

  /** Undefined: the cluster has not been ours yet. */
  get token(): number | undefined {
    return this.#fence.token;
  }

  get state(): LeadershipState {
    if (this.#forbidden === undefined || this.#isOver) return this.#state;
    return { phase: 'forbidden', ...this.#forbidden };
  }

  /** False: there is no connection, and nothing was sent. */
  publish(subject: string, payload: Uint8Array): boolean {
    return this.#connection.publish(subject, payload);
  }

  /** Puts on the wire now what else would go when the running code has ended. */
  flush(): void {
    this.#connection.flush();
  }

  /**
   * Somebody says that there is a newer run; `isItself`: that run. Only the fence knows, if
   * it was not wiped. If the cluster is ours all the same, we are known by a greater token from
   * then on: else who remembers that one would not listen.
   */
  doubt(token: number, isItself = false): void {
    const { nats, token: own } = this;
    if (nats === undefined || own === undefined) return;
    if (token <= own || token > own + FURTHEST_TOKEN) return;
    this.#heard = Math.max(this.#heard, token);
    if (isItself) this.#rival = Math.max(this.#rival, token);
    void this.#hold(nats);
  }

  /** It is over, and this is why; the connection stays until it is closed. */
  end(state: LeadershipState): void {
    this.#isOver = true;
    this.#state = state;
    this.#unavailable?.clear();
    this.#retry?.clear();
    this.#asking?.clear();
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #enter(state: LeadershipState): void {
    const { phase, cause } = this.#state;
    if (state.phase === 'connecting' && phase === state.phase && cause === state.cause) return;
    this.#state = state;
    this.#listener.onChange();
  }

  #await(): void {
    this.#unavailable ??= new Timer(this.#unavailableAfterMs, () => {
      const { cause } = this.#state;
      const why = cause === undefined ? '' : `: ${cause}`;
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

  #onDown(cause: unknown): void {
    if (this.#isOver) return;
    this.#retry?.clear();
    this.#await();
    this.#listener.onDown();
    if (cause instanceof UnavailableError) this.#listener.onLost(cause);
    else this.#enter({ phase: 'connecting', ...explainFailure(cause) });
  }

  /** Whatever it is that is not permitted, the cluster needs it. */
  #onRefused(error: Error): void {
    this.#listener.onRefused(error);
    if (error.name !== 'PermissionViolationError') return;
    this.#forbidden = explainFailure(error);
    this.#listener.onChange();
  }

  /** Makes sure that the cluster is ours. */
  async #hold(nats: NatsConnection): Promise<void> {
    if (this.#isHolding) return;
    this.#isHolding = true;
    const heard = this.#heard;
    try {
      const before = this.token;
      const token = await this.#fence.hold(nats, heard, () => this.#isRivalled());
      const isKnown = this.#state.phase === 'ready' && token === before;
      if (!this.#isOver && this.nats === nats && !isKnown) this.#onHeld(nats);
    } catch (error) {
      if (!this.#isOver) this.#onNotHeld(nats, error);
    } finally {
      this.#isHolding = false;
      // Another connection has come meanwhile, or the word of a newer run.
      const { nats: now } = this;
      const isOther = now !== nats || this.#heard > heard;
      if (now !== undefined && isOther && !this.#isOver) void this.#hold(now);
    }
  }

  /** Whether a newer run lives, of which the store knows nothing any more. */
  async #isRivalled(): Promise<boolean> {
    const isThere = (): boolean => this.#rival > (this.token ?? 0);
    if (isThere()) return true;
    this.#listener.onDoubt();
    await new Promise<void>((resolve) => {
      this.#asking = new Timer(RIVAL_MS, resolve);
    });
    return isThere();
  }

  #onNotHeld(nats: NatsConnection, error: unknown): void {
    if (error instanceof FailedPreconditionError || error instanceof UnavailableError) {
      this.#listener.onLost(error);
      return;
    }
    if (this.nats !== nats) return;
    if (this.#state.phase !== 'ready')
      this.#enter({ phase: 'jetstream', ...explainFailure(failureOfJetStream(error)) });
    this.#retry?.clear();
    this.#retry = new Timer(RETRY_MS, () => {
      if (this.nats === nats) void this.#hold(nats);
    });
  }

  #onHeld(nats: NatsConnection): void {
    this.#unavailable?.clear();
    this.#unavailable = undefined;
    this.#enter({ phase: 'ready' });
    this.#listener.onHeld(nats);
  }
}
