/** `LinkProxy`: a TCP proxy before a server, which makes the link slow, or cuts it. */

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import {
  type Checks,
  checkDuration,
  checkOptions,
  checkString,
  invalidType,
  outOfRange,
  unchecked,
} from '../base/arguments.ts';
import { fieldOf } from '../base/thrown-value.ts';
import { LONGEST_MS, now } from '../base/timer.ts';
import { FailedPreconditionError, InvalidArgumentError } from '../errors/errors.ts';

/** The options of a LinkProxy. */
export type LinkProxyOptions = {
  /**
   * The one server behind the proxy: `nats://host:4222`, `host:4222` or `host`. The port is 4222
   * if it is left out; a scheme, user and password are part of the proxy's `url`, too.
   */
  to: string;
  /** Bytes per second of each connection in each direction (default Infinity). */
  bytesPerSecond?: number | undefined;
  /** Milliseconds that each byte takes longer, in each direction (default 0). */
  latencyMs?: number | undefined;
};

type Connection = { near: Socket; far: Socket; lanes: LinkLane[] };
type Target = { scheme: string; user: string; host: string; port: number };

const NATS_PORT = 4_222;

function targetOf(to: unknown): Target {
  checkString('options.to', to);
  const parts =
    /^([a-z][a-z0-9+.-]*:\/\/)?([^@/,\s]*@)?(\[[\da-f:.]+\]|[^:/,@\s[\]]+)(?::(\d+))?\/?$/i.exec(
      to,
    );
  const [, scheme = '', user = '', host = '', digits = String(NATS_PORT)] = parts ?? [];
  const port = Number(digits);
  if (parts === null || port < 1 || port > 65_535) {
    // Without the value, which may have a password in it.
    throw new InvalidArgumentError(
      'options.to must be the address of one server, such as nats://127.0.0.1:4222',
    );
  }
  return { scheme, user, host: host.replace(/^\[|\]$/g, ''), port };
}

function checkRate(name: string, value: unknown): asserts value is number {
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value);
  if (!(value > 0)) throw outOfRange(name, '> 0, or Infinity (stall() carries nothing)', value);
}

const OPTIONS: Checks = { to: unchecked, bytesPerSecond: checkRate, latencyMs: checkDuration };

/**
 * A TCP proxy of this machine before a NATS server, or any other TCP server. A program that is
 * given its `url` has a link that the test makes slow, stalls, cuts and restores, while the server
 * and all others go on. Rate and latency hold for each connection and each direction by itself.
 * Time is real time, also under fake timers.
 *
 * A NATS server of a cluster tells its clients the addresses of the other servers, which do not
 * lead through the proxy: have one server, or a proxy before each and `ignoreClusterUpdates` in the
 * options of the connection.
 *
 * The proxy keeps the process alive until it is disposed of.
 *
 * @example
 * ```js
 * import { once } from 'node:events';
 * import { createServer } from 'node:http';
 * import { LinkProxy } from 'allstop/testing';
 *
 * const server = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1');
 * await once(server, 'listening');
 * const to = `127.0.0.1:${server.address().port}`;
 * const link = await LinkProxy.open({ to, latencyMs: 100 });
 * const response = await fetch(`http://${link.url}`);
 * console.log(await response.text()); // hello, 200 ms later
 * await link[Symbol.asyncDispose]();
 * server.close();
 * ```
 */
export class LinkProxy implements AsyncDisposable {
  readonly #target: Target;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  readonly #link: LinkConditions;
  #isCut = false;
  #closed: Promise<unknown> | undefined;

  private constructor(target: Target, link: LinkConditions) {
    this.#target = target;
    this.#link = link;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (near) =>
      this.#accept(near),
    );
  }

  /**
   * Opens the proxy at a free port of 127.0.0.1. The server need not run yet.
   *
   * @throws (rejects) TypeError (`ERR_INVALID_ARG_TYPE`), RangeError (`ERR_OUT_OF_RANGE`);
   *   InvalidArgumentError: `to` is not the address of one server; the system's error if no port
   *   can be opened
   */
  static async open(options: LinkProxyOptions): Promise<LinkProxy> {
    if (options === undefined) throw invalidType('options', 'of type object', options);
    const {
      to,
      bytesPerSecond = Number.POSITIVE_INFINITY,
      latencyMs = 0,
    } = checkOptions('options', options, OPTIONS);
    const target = targetOf(to);
    const proxy = new LinkProxy(target, { bytesPerSecond, latencyMs, isStalled: false });
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  /** The address of the proxy, in the form of `to`: for the option `servers` of a NatsStrategy. */
  get url(): string {
    const { scheme, user } = this.#target;
    if (this.#closed !== undefined) throw closedError();
    return `${scheme}${user}127.0.0.1:${Number(fieldOf(this.#server.address(), 'port'))}`;
  }

  /** The number of open connections through the proxy. */
  get connections(): number {
    return this.#connections.size;
  }

  /**
   * Sets the rate, of open connections, too.
   *
   * @param bytesPerSecond - more than 0; Infinity: as fast as it can
   * @throws TypeError, RangeError; FailedPreconditionError: the proxy is disposed of
   */
  setRate(bytesPerSecond: number): void {
    checkRate('bytesPerSecond', bytesPerSecond);
    this.#change({ bytesPerSecond });
  }

  /**
   * Sets the latency, for bytes that arrive from now on.
   *
   * @param latencyMs - milliseconds in each direction, from 0
   * @throws TypeError, RangeError; FailedPreconditionError: the proxy is disposed of
   */
  setLatency(latencyMs: number): void {
    checkDuration('latencyMs', latencyMs);
    this.#change({ latencyMs });
  }

  /**
   * The link is cut: all connections are reset, and so is each new one, until `restore`. Bytes on
   * their way are lost.
   *
   * @throws FailedPreconditionError: the proxy is disposed of
   */
  cut(): void {
    this.#change({});
    this.#isCut = true;
    for (const connection of this.#connections) this.#reset(connection);
  }

  /**
   * The link is silent: bytes stand still in both directions, and connections stay open, as when a
   * cable is pulled: neither end hears that the other one is gone. New ones are accepted and stand
   * still, too. `restore` lets all go on.
   *
   * @throws FailedPreconditionError: the proxy is disposed of
   */
  stall(): void {
    this.#change({ isStalled: true });
  }

  /**
   * Undoes `cut` and `stall`. Rate and latency stay as they are set.
   *
   * @throws FailedPreconditionError: the proxy is disposed of
   */
  restore(): void {
    this.#isCut = false;
    this.#change({ isStalled: false });
  }

  /** Closes the proxy, and resets its connections. A second call does nothing. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed === undefined) {
      this.#closed = once(this.#server, 'close');
      this.#server.close();
      for (const connection of this.#connections) this.#reset(connection);
    }
    await this.#closed;
  }

  #change(conditions: Partial<LinkConditions>): void {
    if (this.#closed !== undefined) throw closedError();
    Object.assign(this.#link, conditions);
    for (const connection of this.#connections) {
      this.#resetIfGone(connection);
      for (const lane of connection.lanes) lane.resume();
    }
  }

  #accept(near: Socket): void {
    near.on('error', () => {}); // 'close' follows
    if (this.#isCut || this.#closed !== undefined) {
      near.resetAndDestroy();
      return;
    }
    const { host, port } = this.#target;
    const far = connect({ host, port, allowHalfOpen: true, noDelay: true });
    far.on('error', () => {});
    const lanes = [new LinkLane(near, far, this.#link), new LinkLane(far, near, this.#link)];
    const connection: Connection = { near, far, lanes };
    this.#connections.add(connection);
    for (const end of [near, far]) end.on('close', () => this.#resetIfGone(connection));
  }

  /** Resets a connection of which one end is closed, unless the link is stalled. */
  #resetIfGone(connection: Connection): void {
    const { near, far } = connection;
    // If both ends were closed in order, the last bytes are still on their way to the client.
    const isFarGone = far.closed && (far.errored !== null || !far.readableEnded);
    if (!this.#link.isStalled && (near.closed || isFarGone)) this.#reset(connection);
  }

  #reset(connection: Connection): void {
    if (!this.#connections.delete(connection)) return;
    for (const lane of connection.lanes) lane.close();
    connection.near.resetAndDestroy();
    // A socket that is connecting would be reset only when it is connected, which may be never.
    if (connection.far.connecting) connection.far.destroy();
    else connection.far.resetAndDestroy();
  }
}

function closedError(): FailedPreconditionError {
  return new FailedPreconditionError('The LinkProxy is disposed of: open another');
}

// One direction of one connection through a LinkProxy: carries bytes late and slowly, in order, and
// loses none while the connection lives.
//
// 1. `#pieces` holds what was read and not written, with the time from which each may be written.
// 2. At most one timer is armed, or the lane waits for `drain` of its target, or for `resume`; else
// `#pieces` is empty. So nothing stands still except while the link is stalled.
// 3. Above `#window` bytes the source is paused: the sender's queue grows, as before a slow link.

/** The conditions of a link, shared by all its lanes, which read them when they write. */
type LinkConditions = { bytesPerSecond: number; latencyMs: number; isStalled: boolean };

/** What a lane reads in advance, beside what is under way for as long as the latency. */
const WINDOW_BYTES = 65_536;
const MOST_UNDER_WAY_BYTES = 16 * 1_048_576;
/** A slow link carries as much at a time as it carries in this time. */
const STEP_MS = 10;

// Captured on import: fake timers that a test installs later do not stop the link.
const { setTimeout: startTimer, clearTimeout: clearTimer } = globalThis;

class LinkLane {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #link: LinkConditions;
  #pieces: { data: Buffer; dueAt: number }[] = [];
  #bytes = 0;
  /** When the link has carried what was written last. */
  #freeAt = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, link: LinkConditions) {
    this.#from = from;
    this.#to = to;
    this.#link = link;
    from.on('data', (data: Buffer) => this.#take(data));
    from.on('end', () => this.#carry());
    to.on('drain', () => this.#carry());
  }

  /** Call it when the conditions of the link have changed. */
  resume(): void {
    clearTimer(this.#timer);
    this.#timer = undefined;
    this.#freeAt = Math.min(this.#freeAt, now());
    this.#carry();
  }

  /** Drops everything: the connection is gone. */
  close(): void {
    clearTimer(this.#timer);
    this.#pieces = [];
  }

  get #window(): number {
    const { bytesPerSecond, latencyMs } = this.#link;
    const underWay = latencyMs === 0 ? 0 : (bytesPerSecond * latencyMs) / 1_000;
    return WINDOW_BYTES + Math.min(underWay, MOST_UNDER_WAY_BYTES);
  }

  #take(data: Buffer): void {
    this.#pieces.push({ data, dueAt: now() + this.#link.latencyMs });
    this.#bytes += data.length;
    if (this.#bytes > this.#window) this.#from.pause();
    this.#carry();
  }

  #carry(): void {
    if (this.#timer !== undefined || this.#to.writableNeedDrain || this.#link.isStalled) return;
    for (let piece = this.#pieces[0]; piece !== undefined; piece = this.#pieces[0]) {
      const { bytesPerSecond } = this.#link;
      const time = now();
      const wait = Math.max(piece.dueAt, this.#freeAt) - time;
      if (wait > 0) {
        const fire = (): void => {
          this.#timer = undefined;
          this.#carry();
        };
        this.#timer = startTimer(fire, Math.min(Math.ceil(wait), LONGEST_MS));
        return;
      }
      const most = Math.max(1, Math.ceil((bytesPerSecond * STEP_MS) / 1_000));
      const part = piece.data.subarray(0, Math.min(most, piece.data.length));
      if (part.length === piece.data.length) this.#pieces.shift();
      else piece.data = piece.data.subarray(part.length);
      this.#bytes -= part.length;
      this.#freeAt = time + (part.length / bytesPerSecond) * 1_000;
      const isFull = !this.#to.write(part);
      if (this.#bytes <= this.#window) this.#from.resume();
      if (isFull) return;
    }
    if (this.#from.readableEnded) this.#to.end();
  }
}
