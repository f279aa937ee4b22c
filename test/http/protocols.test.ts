/** `closeOnStop` with servers of HTTP/2, of TLS, and of no HTTP at all. */

import { once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import net, { type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import tls from 'node:tls';
import { Coordinator } from 'allstop';
import { type CloseOnStopOptions, closeOnStop } from 'allstop/http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { gate, turn } from '../support/gate.ts';
import { ask, keepAlive, listen, RawClient, TLS } from '../support/servers.ts';
import { warningsDuring } from '../support/warnings.ts';

const FOREVER_MS = 2 ** 31 - 1;

async function scene(server: Server, options: CloseOnStopOptions = {}) {
  const coord = new Coordinator();
  const closing = closeOnStop(server, coord, { closeMs: FOREVER_MS, ...options });
  const port = await listen(server);
  const stopped = async (): Promise<void> => {
    coord.requestStop();
    await eventually(() => !server.listening);
    await turn();
    await turn();
  };
  return { coord, closing, port, stopped };
}

describe.each(['h2c', 'h2'])('a server of HTTP/2 (%s)', (kind) => {
  const make = (): http2.Http2Server | http2.Http2SecureServer =>
    kind === 'h2c' ? http2.createServer() : http2.createSecureServer({ ...TLS, allowHTTP1: true });

  async function session(port: number): Promise<http2.ClientHttp2Session> {
    const scheme = kind === 'h2c' ? 'http' : 'https';
    const client = http2.connect(`${scheme}://127.0.0.1:${port}`, { rejectUnauthorized: false });
    client.on('error', () => {});
    onTestFinished(() => client.destroy());
    await once(client, 'remoteSettings');
    return client;
  }

  it('tells its clients to go away, and ends when the streams have ended', async () => {
    const server = make();
    const here = await scene(server);
    const answer = gate();
    server.on('stream', (stream: http2.ServerHttp2Stream) => {
      stream.respond({ ':status': 200 });
      stream.write('foo');
      void answer.opened.then(() => stream.end('bar'));
    });
    const client = await session(here.port);
    const [first, second] = [client.request(), client.request()];
    await Promise.all([once(first, 'response'), once(second, 'response')]);
    expect(here.closing.inFlight).toBe(2);
    const away = once(client, 'goaway');
    here.coord.requestStop();
    expect((await away)[0]).toBe(http2.constants.NGHTTP2_NO_ERROR);
    expect([server.listening, here.closing.inFlight]).toEqual([false, 2]);
    answer.open();
    expect(await Promise.all([text(first), text(second)])).toEqual(['foobar', 'foobar']);
    await here.coord.join();
    expect(here.closing.inFlight).toBe(0);
  });

  it('counts a request once that the program takes as one of HTTP/1', async () => {
    const server = make();
    const here = await scene(server);
    const answer = gate();
    server.on('request', (_: unknown, response: http2.Http2ServerResponse) => {
      void answer.opened.then(() => response.end('foo'));
    });
    const client = await session(here.port);
    const stream = client.request();
    await once(server, 'request');
    expect(here.closing.inFlight).toBe(1);
    await here.stopped();
    answer.open();
    expect(await text(stream)).toBe('foo');
    await here.coord.join();
  });

  it('ends the sessions of idle clients', async () => {
    const here = await scene(make());
    const client = await session(here.port);
    const closed = once(client, 'close');
    here.coord.requestStop();
    await Promise.all([closed, here.coord.join()]);
  });

  it('ends the sessions of idle clients that came while options.close ran', async () => {
    const [begun, closing] = [gate(), gate()];
    const close = async (): Promise<void> => {
      begun.open();
      await closing.opened;
    };
    const server = make();
    const here = await scene(server, { close });
    here.coord.requestStop();
    await begun.opened;
    await turn().then(turn); // what was idle before is closed by now
    const opened = once(server, 'session');
    session(here.port).catch(() => {}); // it may be ended before it is ready
    await opened;
    closing.open();
    await here.coord.join();
  });

  it('cuts streams after closeMs, and says how many', async () => {
    const server = make();
    const here = await scene(server, { closeMs: 20 });
    server.on('stream', () => {});
    const client = await session(here.port);
    const streams = [client.request(), client.request(), client.request()];
    for (const stream of streams) stream.on('error', () => {});
    await eventually(() => here.closing.inFlight === 3);
    const warnings = await warningsDuring(async () => {
      here.coord.requestStop();
      await here.coord.join();
    });
    expect(warnings).toMatchObject([{ message: expect.stringContaining('cut 3 requests') }]);
  });
});

describe('a server of HTTP/2', () => {
  it('is not held up by a client that does not answer the end of its session', async () => {
    const server = http2.createServer();
    const here = await scene(server);
    const client = new RawClient(here.port, true);
    const opened = once(server, 'session');
    client.socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');
    await opened;
    const warnings = await warningsDuring(async () => {
      here.coord.requestStop();
      await here.coord.join();
    });
    expect(warnings).toEqual([]);
  });

  it('closes connections that its clients keep alive with HTTP/1, after their answers', async () => {
    const server = http2.createSecureServer({ ...TLS, allowHTTP1: true });
    const here = await scene(server);
    const answer = gate();
    server.on('request', (request: http.IncomingMessage, response: http.ServerResponse) => {
      if (request.url === '/idle') response.end();
      else void answer.opened.then(() => response.end('foo'));
    });
    const served = { server, port: here.port, kind: 'https' as const };
    await ask(served, { agent: keepAlive('https'), path: '/idle' });
    const answered = ask(served, { agent: keepAlive('https') });
    await eventually(() => here.closing.inFlight === 1);
    await here.stopped();
    answer.open();
    expect(await answered).toEqual({ status: 200, connection: 'close', body: 'foo' });
    await here.coord.join();
  });
});

it.each([
  ['https', () => https.createServer(TLS)],
  ['http2', () => http2.createSecureServer({ ...TLS, allowHTTP1: true })],
  ['tls', () => tls.createServer(TLS)],
])('a server of %s closes a connection whose handshake has not ended', async (_, make) => {
  const server = make();
  const here = await scene(server);
  const client = new RawClient(here.port);
  await once(server, 'connection');
  client.socket.write('\x16\x03\x01', 'latin1'); // where a handshake begins
  expect(here.closing.inFlight).toBe(0);
  const warnings = await warningsDuring(async () => {
    here.coord.requestStop();
    await here.coord.join();
  });
  expect([warnings, await client.ended]).toEqual([[], '']);
});

describe.each(['net', 'tls'])('a server of node:%s', (kind) => {
  const echo = (socket: Socket): void => void socket.pipe(socket);
  const make = (): Server =>
    kind === 'net' ? net.createServer(echo) : tls.createServer(TLS, echo);

  async function client(port: number): Promise<Socket> {
    const options = { port, host: '127.0.0.1', rejectUnauthorized: false };
    const socket = kind === 'net' ? net.connect(options) : tls.connect(options);
    socket.on('error', () => {}).setEncoding('utf8');
    onTestFinished(() => void socket.destroy());
    await once(socket, kind === 'net' ? 'connect' : 'secureConnect');
    return socket;
  }

  it('waits for each connection', async () => {
    const here = await scene(make());
    const [one, other] = [await client(here.port), await client(here.port)];
    await eventually(() => here.closing.inFlight === 2);
    await here.stopped();
    await expect(client(here.port)).rejects.toThrow('ECONNREFUSED');
    one.write('hello');
    expect(await once(one, 'data')).toEqual(['hello']);
    one.end();
    await eventually(() => here.closing.inFlight === 1);
    other.end();
    await here.coord.join();
  });

  it('cuts them after closeMs', async () => {
    const here = await scene(make(), { closeMs: 20 });
    await client(here.port);
    await eventually(() => here.closing.inFlight === 1);
    const warnings = await warningsDuring(async () => {
      here.coord.requestStop();
      await here.coord.join();
    });
    expect(warnings).toMatchObject([{ message: expect.stringContaining('cut 1 request ') }]);
  });
});
