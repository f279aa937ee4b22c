/**
 * What is open at a server: its connections, and the requests in flight on them.
 *
 * A connection is listed by the socket from which its requests are read: until the handshake of TLS
 * has ended that is the accepted socket, then the one of TLS.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2Session, Http2Stream } from 'node:http2';
import type { Server, Socket } from 'node:net';
import { type TLSSocket, Server as TlsServer } from 'node:tls';
import { turn } from '../base/timer.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';

// What was open at a server before anybody listened to it. Node has no public list of that, so this
// reads what Node keeps for itself; a runtime without it gives nothing.

type Parser = { readonly socket?: Socket | null };
type ParserList = { all?(): readonly Parser[] };

/** A field that Node does not document. */
const hidden = (object: object, name: string | symbol) => Reflect.get(object, name) ?? undefined;

/** The socket that was accepted, of a socket of TLS; undefined for a socket that was accepted. */
const acceptedSocket = (socket: Socket): Socket | undefined => hidden(socket, '_parent');

/** The sockets, those of TLS for HTTPS, from which the server reads requests of HTTP/1. */
function http1Sockets(server: Server): Socket[] {
  const key = Object.getOwnPropertySymbols(server).find(
    ({ description }) => description === 'http.server.connections',
  );
  const list: ParserList | undefined = key && hidden(server, key);
  const parsers = list?.all?.() ?? [];
  return parsers.flatMap(({ socket }) => socket ?? []);
}

/** The accepted sockets of all others: after an upgrade, for example. */
function otherSockets(server: Server, http1: readonly Socket[]): Socket[] {
  // A socket of TLS is not a handle of its own.
  const known = new Set<unknown>(http1.flatMap((socket) => [socket, acceptedSocket(socket)]));
  const handles: (() => Socket[]) | undefined = hidden(process, '_getActiveHandles');
  return (handles?.() ?? []).filter(
    (handle) => hidden(handle, 'server') === server && !known.has(handle),
  );
}

// Listeners that a server has only as long as the program listens, too.

/** By event. Each has arguments of its own. */
type Listeners = Readonly<Record<string, (...args: any[]) => void>>;

/**
 * Has each of `listeners` called before those of the program, while the program has one of that
 * event. One of ours alone would change what Node does: without a listener of 'upgrade' it takes
 * such a request for a plain one, and http2 answers by its `stream` alone.
 *
 * @returns what takes all off
 */
function listenAlongside(server: Server, listeners: Listeners): () => void {
  const own = new Map(Object.entries(listeners));
  const on = new Set<string>();
  const added = (event: string): void => {
    const listener = own.get(event);
    if (listener === undefined || on.has(event)) return;
    on.add(event); // first: that it is added is an event of its own
    server.prependListener(event, listener);
  };
  const removed = (event: string): void => {
    const listener = own.get(event);
    if (listener === undefined || !on.has(event) || server.listenerCount(event) > 1) return;
    on.delete(event);
    server.off(event, listener);
  };
  for (const event of own.keys()) if (server.listenerCount(event) > 0) added(event);
  server.on('newListener', added);
  server.on('removeListener', removed);
  return () => {
    server.off('newListener', added);
    server.off('removeListener', removed);
    for (const [event, listener] of own) if (on.has(event)) server.off(event, listener);
  };
}

/** A server with the methods that only those of HTTP have. */
export type AnyServer = Server & {
  updateSettings?: unknown;
  closeIdleConnections?(): void;
  closeAllConnections?(): void;
};

type Http1 = { readonly is: 'http1'; readonly answers: ServerResponse[]; idleAtByte: number };

/** What a connection is used for. */
type Use =
  | { readonly is: 'handshake' }
  | Http1
  | { readonly is: 'http2' } // its streams are counted by session
  /** No requests, or no longer: it is in flight until it closes. */
  | { readonly is: 'whole' };

const newHttp1 = (): Http1 => ({ is: 'http1', answers: [], idleAtByte: 0 });

export class Connections {
  readonly #server: AnyServer;
  readonly #isTls: boolean;
  readonly #protocol: 'http1' | 'http2' | 'whole';
  readonly #open = new Map<Socket, Use>();
  /** The streams in flight of each session. */
  readonly #sessions = new Map<Http2Session, Set<Http2Stream>>();
  readonly #whenEmpty = new Set<() => void>();
  /** Takes the listeners off the server. */
  readonly forget: () => void;
  #closings = 0;
  #isUnused = true;

  constructor(server: AnyServer) {
    this.#server = server;
    this.#isTls = server instanceof TlsServer;
    if (server.updateSettings !== undefined) this.#protocol = 'http2';
    else this.#protocol = server.closeIdleConnections === undefined ? 'whole' : 'http1';
    const http1 = http1Sockets(server);
    const others = otherSockets(server, http1);
    for (const socket of http1) this.#addHttp1(socket, hidden(socket, '_httpMessage'));
    for (const socket of others) this.#add(socket, { is: 'whole' });
    this.forget = this.#listen();
  }

  /** Whether no client has connected, as far as is known. */
  get isUnused(): boolean {
    return this.#isUnused;
  }

  get inFlight(): number {
    let count = 0;
    for (const [socket, use] of this.#open) {
      if (use.is === 'whole') count++;
      else if (use.is === 'http1') count += use.answers.length || Number(hasBegun(socket, use));
    }
    for (const streams of this.#sessions.values()) count += streams.size;
    return count;
  }

  /**
   * From now on each answer is the last one of its connection, and idle connections are closed.
   *
   * @returns what undoes it
   */
  close(): () => void {
    this.#closings++;
    for (const use of this.#open.values()) {
      const last = use.is === 'http1' ? use.answers.at(-1) : undefined;
      if (last !== undefined) announceClose(last);
    }
    const closeIdle = (): void => void this.closeIdle();
    closeIdle();
    // `server.close()` calls it. Node's own cuts answers that have ended, and are still being sent.
    const server = this.#server;
    const isOurs = this.#closings === 1 && server.closeIdleConnections !== undefined;
    const own = Object.getOwnPropertyDescriptor(server, 'closeIdleConnections');
    if (isOurs) server.closeIdleConnections = closeIdle;
    return () => {
      this.#closings--;
      if (!isOurs) return;
      if (own === undefined) delete server.closeIdleConnections;
      else Object.defineProperty(server, 'closeIdleConnections', own);
    };
  }

  destroyAll(): void {
    for (const socket of this.#open.keys()) socket.destroy();
    this.#server.closeAllConnections?.(); // those that were open before anybody looked
  }

  /** Resolves when no connection is open. */
  async empty(): Promise<void> {
    if (this.#open.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenEmpty.add(resolve);
    });
  }

  /** Closes what is idle, and each session of HTTP/2 once its streams have ended. */
  async closeIdle(): Promise<void> {
    await turn(); // a request that has come by now is in the socket: now it is in flight
    if (this.#closings === 0) return; // all were closed by then: these are new
    for (const [socket, use] of this.#open) {
      const isIdle = use.is === 'http1' && use.answers.length === 0 && !hasBegun(socket, use);
      if (isIdle || use.is === 'handshake') socket.destroy();
    }
    for (const session of this.#sessions.keys()) session.close();
  }

  #listen(): () => void {
    const server = this.#server;
    const fixed: Listeners = {
      connection: (socket: Socket) => {
        this.#add(socket, this.#isTls ? { is: 'handshake' } : this.#useOf(socket));
      },
      secureConnection: (socket: TLSSocket) => {
        const accepted = acceptedSocket(socket);
        if (accepted !== undefined) this.#open.delete(accepted);
        this.#add(socket, this.#useOf(socket));
      },
      session: (session: Http2Session) => {
        this.#streamsOf(session);
        if (this.#closings > 0) void turn().then(() => session.close());
      },
      stream: (stream: Http2Stream) => this.#streamed(stream),
    };
    for (const [event, listener] of Object.entries(fixed)) server.prependListener(event, listener);
    const asked = (request: IncomingMessage, response: ServerResponse): void => {
      if (request.httpVersionMajor < 2) this.#asked(request, response);
    };
    const upgraded = ({ socket, httpVersionMajor }: IncomingMessage): void => {
      if (httpVersionMajor < 2) this.#add(socket, { is: 'whole' });
    };
    const leave = listenAlongside(server, {
      request: asked,
      checkContinue: asked,
      checkExpectation: asked,
      upgrade: upgraded,
      connect: upgraded,
    });
    return () => {
      leave();
      for (const [event, listener] of Object.entries(fixed)) server.off(event, listener);
    };
  }

  #useOf(socket: Socket): Use {
    if (this.#protocol === 'whole') return { is: 'whole' };
    const isHttp2 =
      this.#protocol === 'http2' && (!this.#isTls || (socket as TLSSocket).alpnProtocol === 'h2');
    return isHttp2 ? { is: 'http2' } : newHttp1();
  }

  #add(socket: Socket, use: Use): void {
    if (socket.destroyed) return; // its 'close' may have been emitted
    const isNew = !this.#open.has(socket);
    this.#open.set(socket, use);
    if (!isNew) return;
    this.#isUnused = false;
    socket.once('close', () => {
      this.#open.delete(socket);
      if (this.#open.size > 0) return;
      for (const each of this.#whenEmpty) each();
      this.#whenEmpty.clear();
    });
    // Else a client that does not answer the end of a session would hold up the end.
    if (use.is === 'http2') {
      socket.once('finish', () => {
        if (this.#closings > 0) socket.destroy();
      });
    }
  }

  #addHttp1(socket: Socket, response: ServerResponse | undefined): void {
    const use = newHttp1();
    this.#add(socket, use);
    if (response === undefined) use.idleAtByte = socket.bytesRead;
    else this.#answering(socket, use, response);
  }

  #asked({ socket }: IncomingMessage, response: ServerResponse): void {
    const use = this.#open.get(socket);
    if (use?.is === 'http1') this.#answering(socket, use, response);
    else this.#addHttp1(socket, response);
  }

  /** A request is in flight until its answer is written and its body is read. */
  #answering(socket: Socket, use: Http1, response: ServerResponse): void {
    const request = response.req;
    if (use.answers.includes(response)) return; // handed on: 'checkContinue', then 'request'
    const before = use.answers.at(-1);
    use.answers.push(response);
    if (this.#closings > 0) {
      if (before !== undefined) takeBackClose(before); // the client sends without waiting
      announceClose(response);
    }
    const end = (): void => {
      const index = use.answers.indexOf(response);
      if (index === -1 || !(request.complete || socket.destroyed)) return;
      use.answers.splice(index, 1);
      if (use.answers.length > 0) return;
      const isNextHere = isReading(socket);
      use.idleAtByte = isNextHere ? -1 : socket.bytesRead;
      // The answer may have begun before the closing, and have promised that more are welcome.
      if (this.#closings > 0 && !isNextHere) socket.destroySoon();
    };
    response.once('close', () => {
      end();
      if (!request.complete) request.once('end', end).once('close', end);
    });
  }

  #streamsOf(session: Http2Session): Set<Http2Stream> {
    let streams = this.#sessions.get(session);
    if (streams === undefined) {
      streams = new Set();
      this.#sessions.set(session, streams);
      session.once('close', () => this.#sessions.delete(session));
    }
    return streams;
  }

  #streamed(stream: Http2Stream): void {
    const { session } = stream;
    if (session === undefined) return; // destroyed meanwhile
    const streams = this.#streamsOf(session);
    streams.add(stream);
    stream.once('close', () => streams.delete(stream));
    if (this.#closings > 0) session.close();
  }
}

/** Whether the parser of a connection that has had a request is within a further one. */
function isReading(socket: Socket): boolean {
  const parser: { duration?(): number } | undefined = hidden(socket, 'parser');
  return (parser?.duration?.() ?? 0) > 0;
}

/** Whether part of a request has come whose head is not complete. */
function hasBegun(socket: Socket, use: Http1): boolean {
  return socket.bytesRead > use.idleAtByte;
}

const announced = new WeakSet<ServerResponse>();

/**
 * The client learns that the connection takes no further request. This sets no header: with one,
 * `writeHead` merges the program's list of headers into it, and loses some, or refuses the list.
 */
function announceClose(response: ServerResponse): void {
  if (response.headersSent || !response.shouldKeepAlive) return;
  response.shouldKeepAlive = false;
  announced.add(response);
}

/** After an answer with `connection: close` none that follows is sent. */
function takeBackClose(response: ServerResponse): void {
  if (announced.delete(response) && !response.headersSent) response.shouldKeepAlive = true;
}

type Shared = { connections: Connections; users: Map<object, Coordinator> };
const shared = new WeakMap<AnyServer, Shared>();

/** The one list of a server, for each `user`, until all have called `giveBack`. */
export function connectionsOf(server: AnyServer, user: object, coord: Coordinator): Connections {
  let entry = shared.get(server);
  if (entry === undefined) {
    entry = { connections: new Connections(server), users: new Map() };
    shared.set(server, entry);
  }
  entry.users.set(user, coord);
  return entry.connections;
}

export function giveBack(server: AnyServer, user: object): void {
  const entry = shared.get(server);
  if (!entry?.users.delete(user) || entry.users.size > 0) return;
  shared.delete(server);
  entry.connections.forget();
}

/** Whether a coordinator that is not stopped will close the server. */
export function isInUse(server: AnyServer): boolean {
  const coords = shared.get(server)?.users.values() ?? [];
  return [...coords].some((coord) => !coord.shouldStop());
}
