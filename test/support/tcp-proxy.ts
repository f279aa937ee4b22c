/** A way to a server that can become slow, or swallow everything. */

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export class TcpProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Nothing passes, and nothing is closed. */
  #isBlackHole = false;
  /** Both ways. */
  latencyMs = 0;

  private constructor(target: number) {
    this.#server = createServer((near) => {
      const far = connect(target, '127.0.0.1');
      this.#join(near, far);
      this.#join(far, near);
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

  /** From now on what is sent is lost; until then it has passed. */
  swallow(): void {
    this.#isBlackHole = true;
  }

  /** Connections work again. Those from before are dead, as what was sent is lost. */
  restore(): void {
    this.#isBlackHole = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.setNoDelay(true);
    from.on('data', (data) => {
      if (this.#isBlackHole) return;
      if (this.latencyMs === 0) to.write(data);
      else setTimeout(() => to.write(data), this.latencyMs);
    });
    from.on('error', () => {});
    from.on('close', () => {
      this.#sockets.delete(from);
      if (!this.#isBlackHole) to.destroy();
    });
  }
}
