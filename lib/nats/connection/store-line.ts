/**
 * The connection of a store in JetStream (results, checkpoints), and what its operations share: one
 * that has lost its connection, or finds JetStream without a leader, is begun again until its
 * patience is over.
 */

import type { NatsConnection } from '@nats-io/transport-node';
import { fieldOf } from '../../base/thrown-value.ts';
import { within } from '../../base/timer.ts';
import { FailedPreconditionError, UnavailableError } from '../../errors/errors.ts';
import { Connection } from './connection.ts';
import { explainFailure } from './connection-failure.ts';
import type { NatsConnectionOptions } from './connection-options.ts';
import { failureOfJetStream, SilentJetStream } from './jetstream.ts';

/** The pause before an operation is begun again with a JetStream that is silent. */
const AGAIN_MS = 250;
/** How long an operation waits at least for the first attempt to connect. */
const FIRST_MS = 2_000;
/** Of an attempt that has failed, no more counts: it may have carried much. */
const LONGEST_ATTEMPT_MS = 5_000;

export type StoreLineSettings<O> = {
  /** The name of the connection in the server's monitoring. */
  readonly name: string;
  readonly inboxPrefix: string;
  readonly options: NatsConnectionOptions;
  /**
   * For how long one operation waits for servers and JetStream, in all. Its time with a connection
   * that works does not count.
   */
  readonly patienceMs: number;
  /** What could not be read or written, as in "The results in the bucket 'b'". */
  readonly subject: string;
  /** Opens what an operation uses of a connection: once for each, and again after an error. */
  readonly open: (nats: NatsConnection) => Promise<O>;
};

export class StoreLine<O> {
  readonly #settings: StoreLineSettings<O>;
  readonly #waiting = new Set<() => void>();
  #opened: { readonly nats: NatsConnection; readonly parts: Promise<O> } | undefined;
  /** Undefined until the first operation. */
  #connection: Connection | undefined;
  /** Why there is no connection, and which servers were tried. */
  #failure: { cause: unknown; servers: string } | undefined;
  /** What the server has forbidden over the present connection. */
  #refused: Error | undefined;
  /** JetStream has answered here once: it is enabled. */
  #wasThere = false;
  #isClosed = false;

  constructor(settings: StoreLineSettings<O>) {
    this.#settings = settings;
  }

  get servers(): string {
    return this.#settings.options.servers.join(', ');
  }

  /**
   * @param body - may be called several times, each with another connection
   * @throws (rejects) UnavailableError; the FailedPreconditionError of `body`
   */
  async use<T>(what: 'read' | 'written', body: (opened: O) => Promise<T>): Promise<T> {
    let leftMs = this.#settings.patienceMs;
    for (;;) {
      const waited = performance.now();
      const nats = await this.#connected(what, leftMs);
      const began = performance.now();
      leftMs -= began - waited;
      if (this.#opened?.nats !== nats) {
        this.#opened = { nats, parts: this.#settings.open(nats) };
      }
      const opened = this.#opened;
      try {
        const found = await body(await opened.parts);
        this.#wasThere = true;
        return found;
      } catch (error) {
        if (this.#opened === opened) this.#opened = undefined; // a bucket may be made again
        // A package is missing, or the program may write no more.
        if (error instanceof UnavailableError || error instanceof FailedPreconditionError)
          throw error;
        const isLost = nats.isClosed() || this.#connection?.nats !== nats;
        if (isLost && !this.#isClosed) continue;
        const found = this.#refused ?? this.#failureOf(error, nats);
        const mayCome = found instanceof SilentJetStream && !this.#isClosed;
        leftMs -= Math.min(performance.now() - began, LONGEST_ATTEMPT_MS);
        if (!mayCome || leftMs <= 0) throw this.#unavailable(what, found, this.servers);
        await this.#changed(AGAIN_MS);
        leftMs -= AGAIN_MS;
      }
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake();
    await this.#connection?.close();
  }

  #failureOf(error: unknown, nats: NatsConnection): unknown {
    const { options } = this.#settings;
    const found = failureOfJetStream(error, nats, options);
    const isOff = fieldOf(found, 'name') === 'JetStreamNotEnabled';
    return isOff && this.#wasThere ? new SilentJetStream(fieldOf(found, 'cause'), options) : found;
  }

  async #connected(what: 'read' | 'written', patienceMs: number): Promise<NatsConnection> {
    const { name, inboxPrefix, options } = this.#settings;
    this.#connection ??= new Connection(name, inboxPrefix, options, {
      onUp: () => {
        this.#failure = undefined;
        this.#refused = undefined;
        this.#wake();
      },
      onDown: (cause, servers) => {
        this.#failure = { cause, servers };
        this.#wake();
      },
      onRefused: (error) => {
        if (error.name === 'PermissionViolationError') this.#refused = error;
      },
    });
    const began = performance.now();
    for (;;) {
      const { nats } = this.#connection;
      if (nats !== undefined && !nats.isClosed() && !this.#isClosed) return nats;
      const { cause, servers } = this.#failure ?? {};
      if (cause instanceof UnavailableError) throw cause; // the client is missing
      // No attempt to connect has ended yet: its time is no fault of a server.
      const leastMs = this.#failure === undefined ? FIRST_MS : 0;
      const leftMs = began + Math.max(patienceMs, leastMs) - performance.now();
      if (leftMs <= 0 || this.#isClosed) {
        const why = cause ?? new Error('timeout: there is no connection yet');
        throw this.#unavailable(what, why, servers ?? this.servers);
      }
      await this.#changed(leftMs);
    }
  }

  /** Resolves when the connection has changed, at the latest after `ms`. */
  async #changed(ms: number): Promise<void> {
    let wake = (): void => {};
    const changed = new Promise<void>((resolve) => {
      wake = resolve;
    });
    this.#waiting.add(wake);
    await within(ms, changed, () => {});
    this.#waiting.delete(wake);
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  #unavailable(what: 'read' | 'written', error: unknown, servers: string): UnavailableError {
    const { cause, remedy } = explainFailure(error, servers);
    return new UnavailableError(
      `${this.#settings.subject} could not be ${what}: ${cause}. To do: ${remedy}`,
      { cause: error },
    );
  }
}
