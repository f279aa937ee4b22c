/**
 * Holds the cluster for one run: keeps a connection to the servers, and the cluster's key
 * (fence.ts), which it signs every few seconds. A run that has held the cluster once goes on with the
 * next connection before the key is signed again, since JetStream may have no leader for a while.
 *
 * 1. One look at the key is on its way at a time. Whoever asks for one (`assertHeld`) is served by a
 *    look that begins later.
 * 2. `#state` is how far the run is; `end` makes it 'closed' or 'failed', which it stays.
 */

import type { NatsConnection } from '@nats-io/transport-node';
import { Timer, within } from '../../base/timer.ts';
import { FailedPreconditionError, UnavailableError } from '../../errors/errors.ts';
import { type EngineReadiness, type Explanation, standingBy } from '../../errors/phases.ts';
import { Connection } from '../connection/connection.ts';
import { explainFailure } from '../connection/connection-failure.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import { failureOfJetStream } from '../connection/jetstream.ts';
import { FURTHEST_TOKEN } from '../wire/control-messages.ts';
import { type Fence, type Holder, heldBy } from './fence.ts';

/** What a new run does if another holds the cluster. */
export type OnHeld = 'takeOver' | 'refuse' | 'standBy';

/** How often the holder signs the key. */
const SIGN_MS = 4_000;
/** When a look that has failed is tried again, and how often one that stands by looks. */
const RETRY_MS = 1_000;
/** A holder that has not signed for so long is asked whether it lives. */
const UNSIGNED_MS: number = 2 * SIGN_MS;
/** How long to wait until JetStream has stored that the run has ended. */
const RELEASE_MS = 1_000;

export interface LeadershipListener {
  /** There is a new connection, without subscriptions yet. */
  onConnection(nats: NatsConnection): void;
  /** This run holds the cluster: nodes may be sent messages over this connection. */
  onHeld(nats: NatsConnection): void;
  /** The key was signed again. */
  onSigned(): void;
  onDown(): void;
  /** The connection was there, and is lost. */
  onDisconnected(error: Error): void;
  onReconnected(): void;
  /** This run does not hold the cluster, and never will again. */
  onLost(error: Error): void;
  /** The server refuses a subject. */
  onRefused(error: Error): void;
  /** `state` has changed. */
  onChange(): void;
  /** Whether this run answers that it holds the cluster. */
  isAlive(run: string): Promise<boolean>;
  /** Whether any run with a greater token answers. */
  hasRival(): Promise<boolean>;
}

export type LeadershipSettings = {
  readonly cluster: string;
  readonly unavailableAfterMs: number;
  readonly onHeld: OnHeld;
};

type Asked = { resolve: () => void; reject: (error: Error) => void };

export class Leadership {
  readonly connection: Connection;
  readonly #fence: Fence;
  readonly #settings: LeadershipSettings;
  readonly #listener: LeadershipListener;
  readonly #options: NatsConnectionOptions;
  #state: EngineReadiness = { phase: 'connecting' };
  /** The server refuses a subject that the coordinator needs. */
  #forbidden: Explanation | undefined;
  #unavailable: Timer | undefined;
  #next: Timer | undefined;
  /** The look that is under way. */
  #looking: Promise<void> | undefined;
  /** Those that wait for a look that begins after they have asked. */
  #asked: Asked[] = [];
  /** The greatest token that any message has named. */
  #heard = 0;
  /** A rival of this token has answered: nodes are its. */
  #conceded = 0;
  /** While standing by: the holder's key as it was seen last to change, and when. */
  #seen: { revision: number; at: number } | undefined;
  /** Why the run is over. */
  #end: Error | undefined;
  /** There is a connection. */
  #isUp = false;
  /** How many connections there have been. */
  connections = 0;

  constructor(
    fence: Fence,
    settings: LeadershipSettings,
    connect: { name: string; inboxPrefix: string; options: NatsConnectionOptions },
    listener: LeadershipListener,
  ) {
    this.#fence = fence;
    this.#settings = settings;
    this.#listener = listener;
    this.#options = connect.options;
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
    if (this.#forbidden === undefined || this.#end !== undefined) return this.#state;
    return { phase: 'forbidden', ...this.#forbidden };
  }

  /**
   * Resolves when the key has been signed since the call: this run held the cluster then.
   *
   * @throws (rejects) FailedPreconditionError: another run holds it, or this one is over;
   *   UnavailableError: JetStream has not answered for `unavailableAfterMs`
   */
  async assertHeld(): Promise<void> {
    if (this.#end !== undefined) throw this.#end;
    const asked = new Promise<void>((resolve, reject) => {
      this.#asked.push({ resolve, reject });
    });
    this.#look();
    const { unavailableAfterMs, cluster } = this.#settings;
    await within(unavailableAfterMs, asked, () => {
      throw new UnavailableError(
        `Whether this program still holds the cluster '${cluster}' could not be read for ${unavailableAfterMs} ms: ${this.#state.cause ?? 'JetStream does not answer'}`,
      );
    });
  }

  /**
   * Called when a message names the token of another run; `isItself`: that run has sent it. If the
   * token is greater than ours, the key is read again, which alone decides (unless JetStream has
   * lost the key). If this run still holds the cluster, our token is raised above the other one,
   * because nodes that remember the other token would ignore us; not if that run lives.
   */
  doubt(token: number, isItself = false): void {
    const own = this.token;
    if (own === undefined || token <= own || this.tooFarBy(token) > 0) return;
    if (token <= this.#conceded || (token <= this.#heard && !isItself)) return;
    this.#heard = Math.max(this.#heard, token);
    this.#look();
  }

  /**
   * How far a token is ahead of ours that `doubt` ignores, because it is forged, or because the clock
   * of this machine is behind; 0: `doubt` does not ignore it.
   */
  tooFarBy(token: number): number {
    const ahead = token - (this.token ?? token);
    return ahead > FURTHEST_TOKEN ? ahead : 0;
  }

  /** Ends the run, with its last state, because of `error`. The connection stays until `close()`. */
  end(state: EngineReadiness, error: Error): void {
    if (this.#end !== undefined) return;
    this.#end = error;
    this.#state = state;
    this.#unavailable?.clear();
    this.#next?.clear();
    for (const { reject } of this.#asked) reject(error);
    this.#asked = [];
  }

  /** Called after `end`: notes the end in the cluster's key, if that is possible, and disconnects. */
  async close(): Promise<void> {
    const { nats } = this.connection;
    if (nats !== undefined) {
      const released = Promise.resolve(this.#looking).then(() => this.#fence.release(nats));
      await within(
        RELEASE_MS,
        released.catch(() => undefined),
        () => undefined,
      );
    }
    await this.connection.close();
  }

  #enter(state: EngineReadiness): void {
    const { phase, cause } = this.#state;
    // Each failed attempt to connect sets the same state again.
    if (state.phase !== 'ready' && phase === state.phase && cause === state.cause) return;
    this.#state = state;
    this.#listener.onChange();
  }

  #watchUnavailable(): void {
    const { unavailableAfterMs } = this.#settings;
    this.#unavailable ??= new Timer(unavailableAfterMs, () => {
      const { cause, remedy } = this.#state;
      const hint = remedy === undefined ? '' : `. What to do: ${remedy}`;
      const why = cause === undefined ? '' : `: ${cause}${hint}`;
      const text = `The NATS servers were not available for ${unavailableAfterMs} ms${why}`;
      this.#listener.onLost(new UnavailableError(text));
    });
  }

  #areAvailable(): void {
    this.#unavailable?.clear();
    this.#unavailable = undefined;
  }

  #onUp(nats: NatsConnection): void {
    if (this.#end !== undefined) return;
    this.connections += 1;
    if (this.connections > 1) this.#listener.onReconnected();
    this.#isUp = true;
    this.#forbidden = undefined;
    this.#listener.onConnection(nats);
    if (this.token === undefined) this.#enter({ phase: 'jetstream' });
    else this.#onHeld(nats);
    this.#look();
  }

  #onDown(cause: unknown, servers: string): void {
    if (this.#end !== undefined) return;
    this.#next?.clear();
    this.#watchUnavailable();
    this.#listener.onDown();
    const why = explainFailure(cause, servers);
    if (this.#isUp) {
      this.#isUp = false;
      const text = `The connection to the NATS servers is lost: ${why.cause}`;
      this.#listener.onDisconnected(new UnavailableError(text, { cause }));
    }
    if (cause instanceof UnavailableError) this.#listener.onLost(cause);
    else this.#enter({ phase: 'connecting', ...why });
  }

  #onRefused(error: Error, server: string): void {
    this.#listener.onRefused(error);
    if (error.name !== 'PermissionViolationError') return;
    // Every subject is needed, so any missing permission keeps the cluster from being ready.
    this.#forbidden = explainFailure(error, server);
    this.#listener.onChange();
  }

  #lookIn(ms: number): void {
    this.#next?.clear();
    this.#next = new Timer(ms, () => this.#look());
  }

  /** Takes or signs the key, unless that is on its way; tells those that have asked. */
  #look(): void {
    const { nats } = this.connection;
    if (this.#looking !== undefined || this.#end !== undefined || nats === undefined) return;
    this.#next?.clear();
    const asked = this.#asked;
    this.#asked = [];
    const heard = this.#heard;
    this.#looking = this.#hold(nats, heard).then((how) => {
      this.#looking = undefined;
      if (this.#end !== undefined) {
        for (const { reject } of asked) reject(this.#end);
        return;
      }
      if (how === 'held') for (const { resolve } of asked) resolve();
      else this.#asked.unshift(...asked);
      // Meanwhile a new connection or a message with a greater token may have come.
      const isOutdated = this.connection.nats !== nats || this.#heard > heard;
      const isAsked = how === 'held' && this.#asked.length > 0;
      if (isOutdated || isAsked) this.#look();
      else this.#lookIn(how === 'held' ? SIGN_MS : RETRY_MS);
    });
  }

  async #hold(nats: NatsConnection, heard: number): Promise<'held' | 'not-held'> {
    const before = this.token;
    try {
      const isHeld = await this.#fence.hold(nats, heard, {
        mayTake: (holder) => this.#mayTake(holder),
        hasRival: async () => {
          const hasRival = await this.#listener.hasRival();
          if (hasRival) this.#conceded = Math.max(this.#conceded, heard);
          return hasRival;
        },
        isOver: () => this.#end !== undefined,
      });
      if (!isHeld || this.#end !== undefined) return 'not-held';
      if (this.connection.nats !== nats) return 'held';
      if (this.#state.phase !== 'ready' || this.token !== before) this.#onHeld(nats);
      this.#listener.onSigned();
      return 'held';
    } catch (error) {
      if (this.#end === undefined) this.#onNotHeld(nats, error);
      return 'not-held';
    }
  }

  /**
   * Whether a run that has never held the cluster may take it: one that was closed, or does not answer
   * any more, holds nothing.
   */
  async #mayTake({ run, revision }: Holder): Promise<boolean> {
    const { onHeld, cluster } = this.#settings;
    if (onHeld === 'takeOver' || run.ended !== undefined) return true;
    const now = performance.now();
    const isSigned = this.#seen !== undefined && this.#seen.revision !== revision;
    if (this.#seen === undefined || isSigned) this.#seen = { revision, at: now };
    const isQuiet = now - this.#seen.at > UNSIGNED_MS || this.#state.phase !== 'standby';
    const lives = isSigned || !isQuiet || (await this.#listener.isAlive(run.run));
    if (!lives) return true;
    if (onHeld === 'refuse') throw heldBy(cluster, run);
    this.#areAvailable();
    this.#enter({ phase: 'standby', ...standingBy(run.host, run.pid) });
    return false;
  }

  #onNotHeld(nats: NatsConnection, error: unknown): void {
    if (error instanceof FailedPreconditionError || error instanceof UnavailableError) {
      this.#listener.onLost(error);
      return;
    }
    if (this.connection.nats !== nats || this.#state.phase === 'ready') return;
    const why = explainFailure(failureOfJetStream(error, nats, this.#options), nats.getServer());
    this.#enter({ phase: 'jetstream', ...why });
  }

  #onHeld(nats: NatsConnection): void {
    this.#areAvailable();
    this.#enter({ phase: 'ready' });
    this.#listener.onHeld(nats);
  }
}
