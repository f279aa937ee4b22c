/**
 * The simulated network: ordered ways between two places, which may be slow or cut in either
 * direction, and the transport by which the official client uses them. What is sent on a way that is
 * cut arrives when it is mended, as with TCP, unless the connection has ended meanwhile.
 */

import { Buffer } from 'node:buffer';
import { EventEmitter } from 'node:events';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);

/** One direction between two places. */
class Way {
  latencyMs;
  bytesPerMs = Number.POSITIVE_INFINITY;
  isOpen = true;
  #clock;
  #random;
  #held = [];
  /** What is on its way, in the order in which it arrives: times of arrival are not exact. */
  #coming = [];
  /** When the last thing that was sent arrives. */
  #busyUntil = 0;

  constructor(clock, random, latencyMs) {
    this.#clock = clock;
    this.#random = random;
    this.latencyMs = latencyMs;
  }

  /** Calls `arrive` when `bytes` bytes would have come. */
  carry(bytes, arrive) {
    if (!this.isOpen) {
      this.#held.push([bytes, arrive]);
      return;
    }
    const now = this.#clock.now();
    const ms = this.latencyMs * (0.5 + this.#random()) + bytes / this.bytesPerMs;
    this.#busyUntil = Math.max(this.#busyUntil, now + ms);
    this.#coming.push([bytes, arrive]);
    this.#clock.later(this.#busyUntil - now, () => {
      const first = this.#coming.shift();
      if (this.isOpen) first[1]();
      else this.#held.push(first);
    });
  }

  open() {
    if (this.isOpen) return;
    this.isOpen = true;
    for (const [bytes, arrive] of this.#held.splice(0)) this.carry(bytes, arrive);
  }

  cut() {
    this.isOpen = false;
  }
}

export class Network {
  #clock;
  #random;
  #servers = new Map();
  #ways = new Map();
  #latencyMs;
  /** By the name of a client's place: the most bytes that were on their way to or from it at once. */
  most = {};

  /** @param clock - `now()`, and `later(ms, fn)`, which returns what cancels the call */
  constructor({ clock, random = Math.random, latencyMs = 0.2 }) {
    this.#clock = clock;
    this.#random = random;
    this.#latencyMs = latencyMs;
  }

  get clock() {
    return this.#clock;
  }

  add(server) {
    this.#servers.set(server.address, server);
    return server;
  }

  serverAt(address) {
    return this.#servers.get(address);
  }

  /** The way from one place (a server, or the name of a host) to another. */
  way(from, to) {
    const key = `${from.name ?? from}>${to.name ?? to}`;
    let way = this.#ways.get(key);
    if (way === undefined) {
      way = new Way(this.#clock, this.#random, this.#latencyMs);
      this.#ways.set(key, way);
    }
    return way;
  }

  /** For messages between servers. */
  pipe(from, to, arrive) {
    const way = this.way(from, to);
    return {
      get isOpen() {
        return way.isOpen;
      },
      send: (message) => {
        // Servers drop what they cannot send to each other.
        if (way.isOpen) way.carry(message.data.length + 100, () => arrive(message));
      },
    };
  }

  cut(from, to) {
    this.way(from, to).cut();
  }

  mend(from, to) {
    this.way(from, to).open();
  }
}

/** A connection between a client on `host` and a server. */
class Connection {
  #there;
  #back;
  #client;
  #listener;
  #isOver = false;
  /** Takes back that the connection ends with its place. */
  #forget;
  #network;
  #name;
  /** How many bytes are on their way: sent, and not there yet. */
  #sent = 0;
  #coming = 0;

  /** @param listener - `onData`, `onClose`, called in the client's place */
  constructor(network, { host, name }, server, listener) {
    const { bind = (fn) => fn, onDeath } = network.clock;
    this.#network = network;
    this.#name = name;
    this.#there = network.way(host, server);
    this.#back = network.way(server, host);
    const { onData, onClose } = listener;
    this.#listener = { onData: bind(onData), onClose: bind(onClose) };
    this.#forget = onDeath?.(() => this.close());
    const send = (bytes) => {
      this.#coming += bytes.length;
      this.#note(this.#coming);
      this.#back.carry(bytes.length, () => this.#arrive(bytes));
    };
    const close = () => this.#back.carry(0, () => this.#closeHere());
    this.#client = server.connect({ send, close, by: name });
  }

  #note(bytes) {
    const { most } = this.#network;
    most[this.#name] = Math.max(most[this.#name] ?? 0, bytes);
  }

  #arrive(bytes) {
    this.#coming -= bytes.length;
    if (!this.#isOver) this.#listener.onData(bytes);
  }

  #closeHere() {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#forget?.();
    this.#listener.onClose();
  }

  send(bytes) {
    if (this.#isOver) return;
    this.#sent += bytes.length;
    this.#note(this.#sent);
    this.#there.carry(bytes.length, () => {
      this.#sent -= bytes.length;
      this.#client.receive(bytes);
    });
  }

  /** The client ends the connection; the server hears of it later. */
  close() {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#forget?.();
    this.#there.carry(0, () => this.#client.closed());
  }
}

const refused = (address) =>
  Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: 'ECONNREFUSED' });

/**
 * Calls `onData` and `onClose` of the listener from now on.
 *
 * @param answer - called with an error, or with what makes the connection
 */
export function dial(network, place, address, listener, answer) {
  const { host } = place;
  const { bind = (fn) => fn } = network.clock;
  const done = bind(answer);
  const server = network.serverAt(address);
  if (server === undefined) return; // nobody answers there
  const [there, back] = [network.way(host, server), network.way(server, host)];
  there.carry(64, () => {
    if (!server.isUp) {
      back.carry(64, () => done(refused(address)));
      return;
    }
    const open = () => new Connection(network, place, server, listener);
    back.carry(64, () => done(undefined, open));
  });
}

/** What the official client uses in place of a socket. */
export const transportOf = (network, placeOf, { errors, deferred }) =>
  class SimulatedTransport {
    lang = 'nats.js';
    version = '3.4.0';
    closeError;
    #chunks = [];
    #signal = deferred();
    #over = deferred();
    #isDone = false;
    #isConnected = false;
    #connection;

    async connect(server) {
      const address = `${server.hostname}:${server.port}`;
      const greeted = deferred();
      const onData = (bytes) => {
        this.#chunks.push(bytes);
        greeted.resolve();
        this.#signal.resolve();
      };
      const onClose = () => {
        greeted.reject(new Error('the connection was closed'));
        this.#end();
      };
      dial(network, placeOf(), address, { onData, onClose }, (error, open) => {
        if (error !== undefined) {
          greeted.reject(new errors.ConnectionError('connection refused', { cause: error }));
        } else if (!this.#isDone) this.#connection = open();
      });
      await greeted;
      this.#isConnected = true;
    }

    get isClosed() {
      return this.#isDone;
    }

    isEncrypted() {
      return false;
    }

    async *[Symbol.asyncIterator]() {
      for (;;) {
        if (this.#chunks.length === 0) await this.#signal;
        const chunks = this.#chunks;
        this.#chunks = [];
        yield* chunks;
        if (this.#isDone) return;
        if (this.#chunks.length === 0) this.#signal = deferred();
      }
    }

    send(frame) {
      if (!this.#isDone) this.#connection?.send(Buffer.from(frame));
    }

    async close(error) {
      this.closeError = error;
      this.#connection?.close();
      this.#end();
    }

    disconnect() {
      void this.close();
    }

    closed() {
      return this.#over;
    }

    discard() {
      this.#isDone = true;
      this.#connection?.close();
      this.#signal.resolve();
    }

    #end() {
      if (!this.#isConnected || this.#isDone) return;
      this.#isDone = true;
      this.#signal.resolve();
      this.#over.resolve(this.closeError);
    }
  };

/** What the package dials by itself, to learn why the client has failed. */
const socketOf = (network, placeOf) =>
  class SimulatedSocket extends EventEmitter {
    #connection;
    #isOver = false;

    connect({ host, port }) {
      const onData = (bytes) => {
        if (!this.#isOver) this.emit('data', Buffer.from(bytes).toString('latin1'));
      };
      const listener = { onData, onClose: () => this.destroy() };
      dial(network, placeOf(), `${host}:${port}`, listener, (error, open) => {
        if (this.#isOver) return;
        if (error !== undefined) {
          this.destroy(error);
          return;
        }
        this.#connection = open();
        this.emit('connect');
      });
      return this;
    }

    setEncoding() {
      return this;
    }

    write(text) {
      this.#connection?.send(Buffer.from(text));
    }

    destroy(error) {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#connection?.close();
      queueMicrotask(() => {
        if (error !== undefined) this.emit('error', error);
        this.emit('close');
      });
    }
  };

/** From now on sockets of this process connect through `network`. @returns what undoes that */
export function useSockets(network, placeOf) {
  const { Socket } = net;
  const become = (made) => {
    net.Socket = made;
    syncBuiltinESMExports();
  };
  become(socketOf(network, placeOf));
  return () => become(Socket);
}

/**
 * From now on the official client of this process connects through `network`.
 *
 * @param placeOf - where the running code is: its host, and its name
 * @returns what undoes that
 */
export function useNetwork(network, placeOf = () => ({ host: 'here', name: 'here' })) {
  // The client makes its transports by this property, which the package does not export.
  const entry = require.resolve('@nats-io/transport-node');
  const transports = require(join(dirname(entry), 'lib', 'node_transport.js'));
  const { NodeTransport } = transports;
  const core = require('@nats-io/nats-core/internal');
  transports.NodeTransport = transportOf(network, placeOf, core);
  return () => {
    transports.NodeTransport = NodeTransport;
  };
}
