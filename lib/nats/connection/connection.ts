/**
 * A connection to NATS that reconnects until it is closed, and says when it is disconnected. The
 * client's own reconnect loop is switched off: it does not tell why it fails, and gives up in some
 * cases (refused credentials).
 */

import type { ConnectionOptions, NatsConnection } from '@nats-io/transport-node';
import { messageOf } from '../../base/thrown-value.ts';
import { within } from '../../base/timer.ts';
import { UnavailableError } from '../../errors/errors.ts';
import { ClientSockets } from './client-sockets.ts';
import type { NatsConnectionOptions } from './connection-options.ts';
import { clarifyFailure } from './server-info.ts';

/** The delay after a failed attempt to connect; it doubles with each that follows, up to the maximum. */
const RETRY_MS = 100;
const MAX_RETRY_MS = 1_000;
/**
 * The part of a delay that is random, so that nodes that have lost the same server do not all
 * connect at once.
 */
const RETRY_JITTER = 0.5;
const CLOSE_MS = 1_000;
/** How long `connect` of the options may take. */
const ANSWER_MS = 20_000;
const PING_MS = 2_000;
/**
 * A connection is lost when nothing has come over it for this many pings. (The client would count
 * only the replies to its pings, which wait behind all that a slow link still has to carry.)
 */
const MAX_SILENT_PINGS = 2;
const SETTINGS = {
  pingInterval: PING_MS,
  maxPingOut: Number.POSITIVE_INFINITY,
  timeout: 3_000,
  noAsyncTraces: true,
} as const;

export interface ConnectionListener {
  /** There is a new connection, without subscriptions yet. */
  onUp(nats: NatsConnection): void;
  /**
   * The connection is lost, or another attempt to connect has failed. `servers`: the addresses,
   * for messages.
   */
  onDown(cause: unknown, servers: string): void;
  /** The server has reported an error, such as a missing permission (PermissionViolationError). */
  onRefused(error: Error, server: string): void;
}

/** What NatsStrategy needs. */
const CLIENTS = ['@nats-io/transport-node', '@nats-io/jetstream', '@nats-io/kv'];

type Nats = typeof import('@nats-io/transport-node');

/**
 * Imports an optional dependency.
 *
 * @throws (rejects) UnavailableError: the package is not installed
 */
export async function load<T>(name: string, imported: () => Promise<T>): Promise<T> {
  try {
    return await imported();
  } catch (error) {
    const all = [...new Set([...CLIENTS, name])].join(' ');
    throw new UnavailableError(
      `allstop/nats needs the package ${name}, which cannot be loaded: ${messageOf(error)}. What to do: npm install ${all}`,
      { cause: error },
    );
  }
}

export const loadClient = (): Promise<Nats> =>
  load('@nats-io/transport-node', () => import('@nats-io/transport-node'));

/**
 * The client's options for one connection: those that `connect` gives before ours, except for what
 * reconnecting needs.
 *
 * @param inboxPrefix - begins the subjects of replies, so that a server can forbid other clients these
 * @param signal - ends the wait for `connect`
 * @throws (rejects) what `connect` throws; an error of reading a file of credentials
 */
export async function clientOptions(
  nats: Nats,
  options: NatsConnectionOptions,
  inboxPrefix: string,
  signal?: AbortSignal,
): Promise<ConnectionOptions> {
  const { servers, tls, connect, renew } = options;
  const { user, pass, token, nkey, creds } = renew === undefined ? options : renew();
  const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
  const asked = async () => (typeof connect === 'function' ? await connect() : connect);
  const late = (): never => {
    throw new Error(`options.connect has not answered for ${ANSWER_MS} ms`);
  };
  const given = await within(ANSWER_MS, asked(), late, signal).catch((cause: unknown) => {
    // What it has asked is no NATS server: its own error would be taken for one of the servers.
    const found = new Error(messageOf(cause), { cause });
    found.name = 'ConnectOptionError';
    throw found;
  });
  return {
    ...SETTINGS,
    inboxPrefix,
    ...(tls !== undefined && { tls: tls as NonNullable<ConnectionOptions['tls']> }),
    ...(user !== undefined && { user }),
    ...(pass !== undefined && { pass }),
    ...(token !== undefined && { token }),
    ...(nkey !== undefined && { authenticator: nats.nkeyAuthenticator(bytesOf(nkey)) }),
    ...(creds !== undefined && { authenticator: nats.credsAuthenticator(bytesOf(creds)) }),
    ...given,
    reconnect: false,
    servers: [...servers],
    noRandomize: true,
  };
}

export class Connection {
  readonly #options: NatsConnectionOptions;
  readonly #name: string;
  readonly #inboxPrefix: string;
  readonly #listener: ConnectionListener;
  #nats: NatsConnection | undefined;
  /** Of `#nats`, or of the attempt to connect. */
  #sockets = new ClientSockets();
  #isUp = false;
  readonly #closing = new AbortController();
  /**
   * Addresses of the other servers of the NATS cluster, which a server has sent us and were not tried
   * since. They may be out of reach from here, so each attempt tries the configured ones before, and
   * one of these.
   */
  #learned: string[] = [];
  /** How many attempts to connect have failed since the last connection. */
  #failures = 0;
  /** Resolves when, after `close`, no connection and no attempt to connect is left. */
  readonly #over: Promise<void>;

  /** `name`: the name of the connection in the server's monitoring. */
  constructor(
    name: string,
    inboxPrefix: string,
    options: NatsConnectionOptions,
    listener: ConnectionListener,
  ) {
    this.#name = name;
    this.#inboxPrefix = inboxPrefix;
    this.#options = options;
    this.#listener = listener;
    this.#over = this.#run();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Undefined while there is no connection. */
  get nats(): NatsConnection | undefined {
    return this.#isUp ? this.#nats : undefined;
  }

  /**
   * @returns false if nothing was sent: no connection, `close` was called, or the payload is longer
   *   than max_payload
   */
  publish(subject: string, payload: Uint8Array): boolean {
    const { nats } = this;
    // While the client drains, it would throw.
    if (nats === undefined || this.#isClosed || nats.isClosed()) return false;
    if (payload.byteLength > (nats.info?.max_payload ?? Infinity)) return false; // the client would throw
    nats.publish(subject, payload);
    return true;
  }

  /** Sends at once what was published; the client itself waits for the event loop's next turn. */
  flush(): void {
    this.nats?.flush().catch(() => {});
  }

  /** Resolves when what was published has been sent, or after CLOSE_MS. */
  async close(): Promise<void> {
    this.#closing.abort();
    const nats = this.#nats;
    if (this.#isUp && nats !== undefined) {
      const drained = nats.drain().catch(() => {});
      await within(CLOSE_MS, drained, () => {});
    }
    const closed = nats?.close().catch(() => {});
    this.#sockets.destroy(); // else close() of the client may wait for a server that hangs
    await closed;
    await this.#over;
  }

  async #run(): Promise<void> {
    let client: Nats;
    try {
      client = await loadClient();
    } catch (error) {
      this.#listener.onDown(error, this.#options.servers.join(', '));
      return;
    }
    while (!this.#isClosed) {
      const { servers } = this.#options;
      const learned = this.#learned.splice(0, 1);
      try {
        this.#nats = await this.#connect(client, [...shuffled(servers), ...learned]);
      } catch (cause) {
        // Not in the order of the attempt: to operators the same failure has the same words.
        if (!this.#isClosed) this.#listener.onDown(cause, [...servers, ...learned].join(', '));
        await this.#delay();
        this.#failures += 1;
        continue;
      }
      this.#failures = 0;
      await this.#follow(this.#nats);
      if (!this.#isClosed) await this.#delay();
    }
  }

  /** @throws (rejects) why it failed, as clearly as can be told */
  async #connect(client: Nats, servers: readonly string[]): Promise<NatsConnection> {
    const { signal } = this.#closing;
    const given = { ...this.#options, servers };
    const options = await clientOptions(client, given, this.#inboxPrefix, signal);
    const settings = { name: this.#name, ...options };
    this.#sockets = new ClientSockets();
    try {
      return await this.#sockets.connect(client.connect, settings);
    } catch (error) {
      throw await clarifyFailure(error, this.#options.servers, settings, signal);
    }
  }

  async #follow(nats: NatsConnection): Promise<void> {
    if (this.#isClosed) {
      await nats.close();
      this.#sockets.destroy();
      return;
    }
    let lastError: Error | undefined;
    let received = 0;
    let silentPings = 0;
    /** `pending`: how many pings have no reply, with the one that is sent now. */
    const onPing = (pending: number): void => {
      const { inMsgs } = nats.stats();
      silentPings = pending === 1 || inMsgs !== received ? 0 : silentPings + 1;
      received = inMsgs;
      // The client ends the connection, since its own reconnect loop is switched off.
      if (silentPings >= MAX_SILENT_PINGS) nats.reconnect().catch(() => {});
    };
    const watch = async (): Promise<void> => {
      for await (const status of nats.status()) {
        if (status.type === 'ping') onPing(status.pendingPings);
        if (status.type === 'disconnect') this.#isUp = false;
        if (status.type !== 'error' || this.#isClosed) continue;
        lastError = status.error;
        this.#listener.onRefused(status.error, nats.getServer());
      }
    };
    const watching = watch();
    const advertised = nats.info?.connect_urls ?? [];
    this.#learned = advertised.filter((each) => !this.#options.servers.includes(each));
    this.#isUp = true;
    this.#listener.onUp(nats);
    const error = await nats.closed();
    this.#sockets.destroy();
    this.#isUp = false;
    await watching;
    if (this.#isClosed) return;
    const why = error ?? lastError ?? new Error('The connection was lost');
    this.#listener.onDown(why, nats.getServer());
  }

  /** Resolves when it is time for the next attempt, or `close` is called. */
  async #delay(): Promise<void> {
    if (this.#isClosed) return;
    const delayMs = Math.min(RETRY_MS * 2 ** this.#failures, MAX_RETRY_MS);
    const afterMs = delayMs * (1 + RETRY_JITTER * Math.random());
    await within(afterMs, new Promise(() => {}), () => {}, this.#closing.signal).catch(() => {});
  }
}

/** In random order: clients that have lost the same server do not all try the same one next. */
function shuffled(servers: readonly string[]): string[] {
  return servers
    .map((server) => ({ server, at: Math.random() }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ server }) => server);
}
