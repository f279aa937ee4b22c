/** Servers of each kind with one handler, and clients, for the tests of `allstop/http`. */

import { readFileSync } from 'node:fs';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import fastify from 'fastify';
import { afterAll, onTestFinished } from 'vitest';
import { Certificates } from './certificates.ts';
import { fetchPeers } from './peers.ts';

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;
export type Kind = 'http' | 'https' | 'fastify' | 'express';
export const KINDS: readonly Kind[] = ['http', 'https', 'fastify', 'express'];

/** `close`: what the framework wants to be called in place of `server.close()`. */
export type Served = { server: Server; close?: () => unknown; port: number; kind: Kind };

export type Answer = { status: number | undefined; connection: string | undefined; body: string };

const certificates = new Certificates();
afterAll(() => certificates.remove());
const pem = (file: string): Buffer => readFileSync(certificates.path(file));
export const TLS = { key: pem('server.key'), cert: pem('server.pem') };

const makers: Record<
  Kind,
  (handler: Handler) => Promise<{ server: Server; close?: () => unknown }>
> = {
  http: async (handler) => ({ server: http.createServer(handler) }),
  https: async (handler) => ({ server: https.createServer(TLS, handler) }),
  fastify: async (handler) => {
    const app = fastify();
    app.all('/*', async (request, reply) => {
      reply.hijack();
      handler(request.raw, reply.raw);
    });
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, _payload, done) => done(null));
    await app.ready();
    return { server: app.server, close: () => app.close() };
  },
  express: async (handler) => {
    const { importPeer } = await fetchPeers();
    const express = (await importPeer('express')) as () => { use(handler: Handler): void };
    const app = express();
    app.use(handler);
    return { server: http.createServer(app as unknown as Handler) };
  },
};

/** A server that listens. */
export async function serve(kind: Kind, handler: Handler): Promise<Served> {
  const made = await makers[kind](handler);
  return { ...made, kind, port: await listen(made.server) };
}

/** @returns the port. The server is closed with all its connections when the test has ended. */
export async function listen(server: Server): Promise<number> {
  const open = new Set<Socket>();
  const add = (socket: Socket): void => void open.add(socket);
  server.on('connection', add);
  onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return (server.address() as AddressInfo).port;
}

/** An agent of the test: its connections are closed when the test has ended. */
export function keepAlive(kind: Kind): http.Agent {
  const agent = new (kind === 'https' ? https : http).Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return agent;
}

/** Sends a request, whose body the caller ends: `begin(...).end()`. */
export function begin(
  { kind, port }: Served,
  options: http.RequestOptions = {},
): http.ClientRequest {
  const { request } = kind === 'https' ? https : http;
  const tls = { rejectUnauthorized: false };
  return request({ host: '127.0.0.1', port, agent: false, ...tls, ...options }).on(
    'error',
    () => {}, // `answerOf` gives it
  );
}

export async function answerOf(sent: http.ClientRequest): Promise<Answer> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.on('response', resolve).on('error', reject);
  });
  const { statusCode: status, headers } = response;
  return { status, connection: headers.connection, body: await text(response) };
}

export const ask = async (served: Served, options?: http.RequestOptions): Promise<Answer> =>
  answerOf(begin(served, options).end());

/** A client that writes bytes, and reads all that comes until the end. */
export class RawClient {
  readonly socket: Socket;
  received = '';
  readonly ended: Promise<string>;

  constructor(port: number, allowHalfOpen = false) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen });
    this.socket.setEncoding('latin1').on('data', (bytes: string) => {
      this.received += bytes;
    });
    this.socket.on('error', () => {}); // a reset is an end, too
    this.ended = new Promise((resolve) => {
      this.socket.once('close', () => resolve(this.received));
      this.socket.once('end', () => resolve(this.received));
    });
    onTestFinished(() => void this.socket.destroy());
  }

  get(path: string, headers = ''): this {
    this.socket.write(`GET ${path} HTTP/1.1\r\nhost: test\r\n${headers}\r\n`);
    return this;
  }
}
