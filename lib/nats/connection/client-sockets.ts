/**
 * The TCP sockets that the NATS client opens. The client leaves a socket open when it gives up a
 * server that has accepted the connection and is silent, and when it closes a connection to a
 * server that hangs. Such a socket would keep the process from its end.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { ConnectionOptions, NatsConnection } from '@nats-io/transport-node';

/** The sockets of the attempt to connect that the running code belongs to. */
const attempt = new AsyncLocalStorage<ClientSockets>();
let isSubscribed = false;

export class ClientSockets {
  readonly #sockets = new Set<Socket>();
  /** Ends sockets that begin with TLS, of which Node does not tell. */
  readonly #ending = new AbortController();
  #isConnecting = false;

  /** Calls `connect` of the client, and knows the sockets that it opens. */
  async connect(
    connect: (settings: ConnectionOptions) => Promise<NatsConnection>,
    settings: ConnectionOptions,
  ): Promise<NatsConnection> {
    if (!isSubscribed) {
      // Node tells of each socket that `net.connect` makes, in the caller's context.
      subscribe('net.client.socket', (message) => {
        const own = attempt.getStore();
        if (own !== undefined && own.#isConnecting)
          own.#sockets.add((message as { socket: Socket }).socket);
      });
      isSubscribed = true;
    }
    this.#isConnecting = true;
    try {
      const connected = await attempt.run(this, connect, this.#withSignal(settings));
      // The client tries one server after the other: only the last socket is in use.
      this.#destroyAllBut(1);
      return connected;
    } catch (error) {
      this.destroy();
      throw error;
    } finally {
      // What the program does when it hears of the connection may have inherited the context.
      this.#isConnecting = false;
    }
  }

  /** Ends the connection, or the attempt to connect. */
  destroy(): void {
    this.#destroyAllBut(0);
    this.#ending.abort();
  }

  #withSignal(settings: ConnectionOptions): ConnectionOptions {
    const { tls } = settings;
    if (typeof tls !== 'object' || tls?.handshakeFirst !== true) return settings;
    const { signal } = this.#ending; // an option of `tls.connect`, to which the client passes it
    return { ...settings, tls: { ...tls, signal } as NonNullable<ConnectionOptions['tls']> };
  }

  #destroyAllBut(last: number): void {
    for (const socket of [...this.#sockets].slice(0, this.#sockets.size - last)) {
      // A TLS socket over this one is destroyed by 'close', which Node itself emits later. If a write
      // of the TLS socket failed until then, Node would emit its 'close' before its 'error': the
      // client removes its listeners at the first, and the second would end the process.
      socket.emit('close');
      socket.destroy();
      this.#sockets.delete(socket);
    }
  }
}
