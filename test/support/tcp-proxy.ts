/** A TCP proxy to a server, which can delay or drop what is sent, or carry it slowly. */

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const SLICE_MS = 50;

export class TcpProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Drops everything, but leaves connections open. */
  #isBlackHole = false;
  /** The delay in each direction. */
  latencyMs = 0;
  /** Drops the next message from the server that contains this text. */
  loseNext: string | undefined;
  /** How many bytes a second each connection carries to the server. */
  uplinkBytesPerSecond: number = Number.POSITIVE_INFINITY;
  /** How many bytes have gone to the server. */
  bytesUp = 0;
  connections = 0;

  private constructor(target: number) {
    this.#server = createServer((near) => {
      const far = connect(target, '127.0.0.1');
      const messages = new NatsMessages();
      this.connections += 1;
      this.#join(
        near,
        far,
        (data) => [data],
        (part) => this.#carryUp(near, far, part),
      );
      this.#join(far, near, (data) => messages.split(data));
    });
  }

  static async to(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  /** Drops everything from now on. */
  swallow(): void {
    this.#isBlackHole = true;
  }

  /** Lets new connections work again. Closes the old ones, which have lost data. */
  restore(): void {
    this.#isBlackHole = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(
    from: Socket,
    to: Socket,
    split: (data: Buffer) => Buffer[],
    carry = (part: Buffer): unknown => to.write(part),
  ): void {
    this.#sockets.add(from);
    from.setNoDelay(true);
    from.on('data', (data: Buffer) => {
      for (const part of split(data)) {
        if (this.#isBlackHole || this.#isLost(part)) continue;
        if (this.latencyMs === 0) carry(part);
        else setTimeout(() => carry(part), this.latencyMs);
      }
    });
    from.on('error', () => {});
    from.on('close', () => {
      this.#sockets.delete(from);
      if (!this.#isBlackHole) to.destroy();
    });
  }

  async #carryUp(near: Socket, far: Socket, data: Buffer): Promise<void> {
    this.bytesUp += data.length;
    if (this.uplinkBytesPerSecond === Number.POSITIVE_INFINITY) {
      far.write(data);
      return;
    }
    near.pause(); // so that the sender's queue grows, as before a slow link
    const length = Math.ceil((this.uplinkBytesPerSecond * SLICE_MS) / 1_000);
    for (let at = 0; at < data.length && !far.destroyed; at += length) {
      await sleep(SLICE_MS);
      far.write(data.subarray(at, at + length));
    }
    near.resume();
  }

  #isLost(part: Buffer): boolean {
    if (this.loseNext === undefined || !part.includes(this.loseNext)) return false;
    this.loseNext = undefined;
    return true;
  }
}

/** Splits the bytes that a NATS server sends into its messages. */
class NatsMessages {
  #rest: Buffer = Buffer.alloc(0);

  split(data: Buffer): Buffer[] {
    const parts: Buffer[] = [];
    let rest = Buffer.concat([this.#rest, data]);
    for (;;) {
      const line = rest.indexOf('\r\n');
      if (line === -1) break;
      const words = rest.toString('latin1', 0, line).split(' ');
      const isMessage = words[0] === 'MSG' || words[0] === 'HMSG';
      const length = line + 2 + (isMessage ? Number(words.at(-1)) + 2 : 0);
      if (rest.length < length) break;
      parts.push(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
    this.#rest = rest;
    return parts;
  }
}
