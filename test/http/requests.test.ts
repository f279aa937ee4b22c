/**
 * `closeOnStop` with servers of HTTP/1. The cases of http-terminator and stoppable are here, too: the
 * same for node:http, node:https, Fastify and Express.
 */

import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Coordinator } from 'allstop';
import { closeOnStop } from 'allstop/http';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { gate, turn } from '../support/gate.ts';
import {
  answerOf,
  ask,
  begin,
  KINDS,
  type Kind,
  keepAlive,
  listen,
  RawClient,
  serve,
} from '../support/servers.ts';
import { warningsDuring } from '../support/warnings.ts';

const FOREVER_MS = 2 ** 31 - 1;

/** The next request that a server gets. */
async function nextRequest(
  server: http.Server | Socket,
): Promise<[IncomingMessage, ServerResponse]> {
  return (await once(server, 'request')) as [IncomingMessage, ServerResponse];
}

/** The same for each kind. Express is fetched, which takes seconds. */
for (const kind of KINDS) {
  const tags = kind === 'express' ? ['long'] : [];
  describe(`a server of ${kind}`, { tags }, () => serverStories(kind));
}

function serverStories(kind: Kind): void {
  it('without a connection is closed by the stop', async () => {
    const { server, close } = await serve(kind, () => {});
    const coord = new Coordinator();
    closeOnStop(server, coord, { close });
    expect(server.listening).toBe(true);
    coord.requestStop();
    await coord.join();
    expect(server.listening).toBe(false);
  });

  it('accepts no more, and ends when the request in flight has its answer', async () => {
    const answer = gate();
    const served = await serve(
      kind,
      (_, response) => void answer.opened.then(() => response.end('foo')),
    );
    const coord = new Coordinator();
    const closing = closeOnStop(served.server, coord, { close: served.close, closeMs: FOREVER_MS });
    const sent = begin(served, { agent: keepAlive(kind) }).end();
    const answered = answerOf(sent);
    await nextRequest(served.server as http.Server);
    coord.requestStop();
    await eventually(() => !served.server.listening);
    await expect(ask(served)).rejects.toThrow('ECONNREFUSED');
    expect([closing.inFlight, coord.threads.length]).toEqual([1, 1]);
    answer.open();
    expect(await answered).toEqual({ status: 200, connection: 'close', body: 'foo' });
    await coord.join();
    expect(closing.inFlight).toBe(0);
  });

  it('closes the connection after an answer that had promised to keep it alive', async () => {
    const rest = gate();
    const served = await serve(kind, (_, response) => {
      response.write('foo');
      void rest.opened.then(() => response.end('bar'));
    });
    const coord = new Coordinator();
    closeOnStop(served.server, coord, { close: served.close, closeMs: FOREVER_MS });
    const sent = begin(served, { agent: keepAlive(kind) }).end();
    const answered = answerOf(sent);
    await once(sent, 'response');
    coord.requestStop();
    await eventually(() => !served.server.listening);
    rest.open();
    expect(await answered).toEqual({ status: 200, connection: 'keep-alive', body: 'foobar' });
    await coord.join();
  });

  it('closes the connections that clients keep alive, and tells nobody', async () => {
    const served = await serve(kind, (_, response) => void response.end('foo'));
    const coord = new Coordinator();
    const closing = closeOnStop(served.server, coord, { close: served.close, closeMs: FOREVER_MS });
    const sent = begin(served, { agent: keepAlive(kind) }).end();
    expect(await answerOf(sent)).toEqual({ status: 200, connection: 'keep-alive', body: 'foo' });
    await eventually(() => closing.inFlight === 0);
    const warnings = await warningsDuring(async () => {
      coord.requestStop();
      await coord.join();
    });
    expect(warnings).toEqual([]);
  });

  it('cuts what has not ended after closeMs, and says how many', async () => {
    const served = await serve(kind, () => {});
    const coord = new Coordinator();
    closeOnStop(served.server, coord, { close: served.close, closeMs: 50, name: 'api' });
    const sent = Promise.allSettled([ask(served), ask(served)]);
    await nextRequest(served.server as http.Server);
    await nextRequest(served.server as http.Server);
    const warnings = await warningsDuring(async () => {
      coord.requestStop();
      await coord.join();
    });
    expect(warnings).toMatchObject([
      { code: 'ALLSTOP_REQUESTS_CUT', message: expect.stringMatching(/'api' has cut 2 requests/) },
    ]);
    expect(await sent).toMatchObject([
      { reason: { code: 'ECONNRESET' } },
      { reason: { code: 'ECONNRESET' } },
    ]);
    expect(served.server.listening).toBe(false);
  });

  it('sends an answer whole that its client reads slowly', async () => {
    const size = 50_000_000; // more than the buffers of the system hold
    const served = await serve(kind, (_, response) => void response.end(Buffer.alloc(size)));
    const coord = new Coordinator();
    closeOnStop(served.server, coord, { close: served.close, closeMs: FOREVER_MS });
    const sent = begin(served, { agent: keepAlive(kind) }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    coord.requestStop();
    await eventually(() => !served.server.listening);
    let received = 0;
    for await (const part of response) received += (part as Buffer).length;
    expect(received).toBe(size);
    await coord.join();
  });

  it('reads a body to its end that comes slowly', async () => {
    const served = await serve(kind, (request, response) => {
      let length = 0;
      request.on('data', (part: Buffer) => {
        length += part.length;
      });
      request.on('end', () => response.end(String(length)));
    });
    const coord = new Coordinator();
    closeOnStop(served.server, coord, { close: served.close, closeMs: FOREVER_MS });
    const sent = begin(served, { method: 'POST', headers: { 'content-type': 'text/plain' } });
    sent.write('half');
    await nextRequest(served.server as http.Server);
    coord.requestStop();
    await eventually(() => !served.server.listening);
    sent.end('half');
    expect(await answerOf(sent)).toEqual({ status: 200, connection: 'close', body: '8' });
    await coord.join();
  });

  it('knows a request that was in flight before closeOnStop was called', async () => {
    const answer = gate();
    const served = await serve(
      kind,
      (_, response) => void answer.opened.then(() => response.end('foo')),
    );
    const agent = keepAlive(kind);
    const answered = answerOf(begin(served, { agent }).end());
    await nextRequest(served.server as http.Server);
    const coord = new Coordinator();
    const closing = closeOnStop(served.server, coord, { close: served.close, closeMs: FOREVER_MS });
    expect(closing.inFlight).toBe(1);
    coord.requestStop();
    await eventually(() => !served.server.listening);
    answer.open();
    expect(await answered).toEqual({ status: 200, connection: 'close', body: 'foo' });
    await coord.join();
  });
}

describe('a server of HTTP/1', () => {
  type Scene = { coord: Coordinator; server: http.Server; port: number; inFlight(): number };

  async function scene(handler: http.RequestListener, options = {}): Promise<Scene> {
    const server = http.createServer(handler);
    const coord = new Coordinator();
    const closing = closeOnStop(server, coord, { closeMs: FOREVER_MS, ...options });
    return { coord, server, port: await listen(server), inFlight: () => closing.inFlight };
  }

  async function stopped({ coord, server }: Scene): Promise<void> {
    coord.requestStop();
    await eventually(() => !server.listening);
    await turn(); // what is idle is closed by now
    await turn();
  }

  it('answers requests that a client sends without waiting, and closes after the last', async () => {
    const waiting: ServerResponse[] = [];
    const here = await scene((_, response) => void waiting.push(response));
    const client = new RawClient(here.port).get('/1').get('/2');
    await eventually(() => waiting.length === 2);
    await stopped(here);
    client.get('/3');
    await eventually(() => waiting.length === 3);
    expect(here.inFlight()).toBe(3);
    for (const response of waiting) response.end(`answer to ${response.req.url};`);
    const received = await client.ended;
    expect(received.match(/answer to \/\d/g)).toEqual([
      'answer to /1',
      'answer to /2',
      'answer to /3',
    ]);
    expect(received.toLowerCase().match(/connection: .*/g)).toEqual([
      'connection: keep-alive',
      'connection: keep-alive',
      'connection: close',
    ]);
    await here.coord.join();
  });

  it.each([
    ['names and values', ['set-cookie', 'a', 'set-cookie', 'b']],
    [
      'pairs',
      [
        ['set-cookie', 'a'],
        ['set-cookie', 'b'],
      ],
    ],
  ])('sends all headers of an answer that gives them as a list of %s', async (_, headers) => {
    const answer = gate();
    const here = await scene((_request, response) => {
      void answer.opened.then(() => response.writeHead(200, headers as string[]).end('foo'));
    });
    const client = new RawClient(here.port).get('/');
    await nextRequest(here.server);
    await stopped(here);
    answer.open();
    const received = await client.ended;
    expect(received).toMatch(/^HTTP\/1.1 200 OK\r\nset-cookie: a\r\nset-cookie: b\r\n/);
    expect(received).toContain('Connection: close\r\n');
    await here.coord.join();
  });

  it('answers a request whose head had come in part, and counts it', async () => {
    const here = await scene((_, response) => void response.end('foo'));
    const client = new RawClient(here.port);
    client.socket.write('GET / HT');
    await eventually(() => here.inFlight() === 1);
    await stopped(here);
    client.socket.write('TP/1.1\r\nhost: test\r\n\r\n');
    expect(await client.ended).toMatch(/connection: close[^]*foo/i);
    await here.coord.join();
  });

  it('answers the second request of a connection whose head had come in part', async () => {
    const here = await scene((_, response) => void response.end('foo'));
    const client = new RawClient(here.port).get('/1');
    await eventually(() => client.received.includes('foo') && here.inFlight() === 0);
    client.socket.write('GET / HT');
    await eventually(() => here.inFlight() === 1);
    await stopped(here);
    client.socket.write('TP/1.1\r\nhost: test\r\n\r\n');
    expect(await client.ended).toMatch(/foo[^]*connection: close[^]*foo/i);
    await here.coord.join();
  });

  it('counts a request of which part had come before the answer to the last', async () => {
    const answer = gate();
    const here = await scene((_, response) => void answer.opened.then(() => response.end('foo')));
    const client = new RawClient(here.port);
    client.socket.write('GET /1 HTTP/1.1\r\nhost: test\r\n\r\nGET /2 HT');
    await nextRequest(here.server as http.Server);
    answer.open();
    await eventually(() => client.received.includes('foo'));
    expect(here.inFlight()).toBe(1);
    await stopped(here);
    client.socket.write('TP/1.1\r\nhost: test\r\n\r\n');
    expect(await client.ended).toMatch(/foo[^]*connection: close[^]*foo/i);
    await here.coord.join();
  });

  it('answers a request that lies unread in its socket at the stop', async () => {
    const here = await scene((_, response) => void response.end('foo'));
    const client = new RawClient(here.port).get('/1');
    await eventually(() => client.received.includes('foo') && here.inFlight() === 0);
    await new Promise<void>((resolve) => {
      client.socket.write('GET /2 HTTP/1.1\r\nhost: test\r\n\r\n', () => resolve());
    });
    here.coord.requestStop(); // in the turn in which the client's bytes have left it
    expect(await client.ended).toMatch(/foo[^]*foo/);
    await here.coord.join();
  });

  it('closes connections on which no request began, and counts none', async () => {
    const here = await scene(() => {});
    const silent = new RawClient(here.port);
    await once(here.server, 'connection');
    expect(here.inFlight()).toBe(0);
    const warnings = await warningsDuring(async () => {
      here.coord.requestStop();
      await here.coord.join();
    });
    expect([warnings, await silent.ended]).toEqual([[], '']);
  });

  it('answers a client that has closed its half of the connection', async () => {
    const answer = gate();
    const server = http.createServer(
      (_, response) => void answer.opened.then(() => response.end('foo')),
    );
    (server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
    const coord = new Coordinator();
    closeOnStop(server, coord, { closeMs: FOREVER_MS });
    const client = new RawClient(await listen(server), true).get('/');
    client.socket.end();
    await once(server, 'request');
    coord.requestStop();
    await eventually(() => !server.listening);
    answer.open();
    expect(await client.ended).toContain('foo');
    await coord.join();
  });

  it.each(['HEAD', 'GET'])('closes after an answer without a body (%s)', async (method) => {
    const answer = gate();
    const here = await scene((_, response) => {
      response.statusCode = method === 'GET' ? 304 : 200;
      void answer.opened.then(() => response.end());
    });
    const sent = begin({ ...here, kind: 'http' }, { method, agent: keepAlive('http') }).end();
    const answered = answerOf(sent);
    await once(here.server, 'request');
    await stopped(here);
    answer.open();
    expect(await answered).toMatchObject({ connection: 'close', body: '' });
    await here.coord.join();
  });

  it('waits for the body of a request that it has already answered', async () => {
    const here = await scene((_, response) => {
      response.writeHead(413, { connection: 'keep-alive' }).end('too large');
    });
    const client = new RawClient(here.port);
    client.socket.write('POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 8\r\n\r\nhalf');
    await eventually(() => client.received.includes('too large'));
    await stopped(here);
    expect(here.inFlight()).toBe(1);
    client.socket.write('half');
    await client.ended;
    await here.coord.join();
  });

  it('counts a request that waits for `100 Continue`', async () => {
    const server = http.createServer();
    const coord = new Coordinator();
    const closing = closeOnStop(server, coord, { closeMs: FOREVER_MS });
    const asked = gate();
    server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      asked.open();
      response.writeContinue();
      server.emit('request', request, response);
    });
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      request.resume().on('end', () => response.end('foo'));
    });
    const port = await listen(server);
    const headers = { expect: '100-continue' };
    const sent = begin({ server, port, kind: 'http' }, { method: 'POST', headers });
    sent.flushHeaders();
    await once(sent, 'continue');
    expect(closing.inFlight).toBe(1);
    coord.requestStop();
    await eventually(() => !server.listening);
    sent.end('body');
    expect(await answerOf(sent)).toEqual({ status: 200, connection: 'close', body: 'foo' });
    await coord.join();
  });

  it('does not wait for a client that has gone before the program takes its request', async () => {
    const server = http.createServer();
    const coord = new Coordinator();
    const closing = closeOnStop(server, coord, { closeMs: FOREVER_MS });
    const port = await listen(server);
    const client = new RawClient(port);
    const asked = once(server, 'checkContinue') as Promise<[IncomingMessage, ServerResponse]>;
    server.on('request', () => {}).on('checkContinue', () => {});
    client.socket.write('POST / HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\n\r\n');
    const [request, response] = await asked;
    client.socket.destroy();
    await once(request.socket, 'close');
    server.emit('request', request, response); // after an asynchronous check
    expect(closing.inFlight).toBe(0);
    coord.requestStop();
    await coord.join();
  });

  it.each([
    ['upgrade', 'GET / HTTP/1.1\r\nhost: test\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n'],
    ['connect', 'CONNECT test:80 HTTP/1.1\r\nhost: test\r\n\r\n'],
  ])('counts a connection as in flight after an event %s', async (event, head) => {
    const here = await scene(() => {});
    const taken = once(here.server, event) as Promise<[IncomingMessage, Socket]>;
    const client = new RawClient(here.port);
    client.socket.write(head);
    const [, socket] = await taken;
    socket.write('hello');
    await stopped(here);
    expect(here.inFlight()).toBe(1);
    socket.write(' still here');
    socket.end();
    expect(await client.ended).toBe('hello still here');
    client.socket.destroy();
    await here.coord.join();
  });

  it('cuts a connection that was upgraded after closeMs', async () => {
    const here = await scene(() => {}, { closeMs: 20 });
    here.server.on('upgrade', () => {});
    const client = new RawClient(here.port).get('/', 'connection: upgrade\r\nupgrade: chat\r\n');
    await once(here.server, 'upgrade');
    const warnings = await warningsDuring(async () => {
      here.coord.requestStop();
      await here.coord.join();
    });
    expect(warnings).toMatchObject([
      { message: expect.stringContaining('has cut 1 request that') },
    ]);
    await client.ended;
  });

  it('takes an upgrade for a plain request if the program does not listen to upgrades', async () => {
    const here = await scene((_, response) => void response.end('plain'));
    const listener = (): void => {};
    here.server.on('upgrade', listener).off('upgrade', listener);
    const client = new RawClient(here.port).get('/', 'connection: upgrade\r\nupgrade: chat\r\n');
    await eventually(() => client.received.includes('plain'));
    here.coord.requestStop();
    await here.coord.join();
  });

  it('loses none of thousands of connections', { tags: 'long' }, async () => {
    const waiting: ServerResponse[] = [];
    const here = await scene((request, response) => {
      if (request.url === '/slow') waiting.push(response);
      else response.end('foo');
    });
    here.server.keepAliveTimeout = 0; // the machine may be slow
    const clients: Socket[] = [];
    let answers = 0;
    const askFrom = async (path: string): Promise<void> => {
      const client = connect(here.port, '127.0.0.1').on('error', () => {});
      clients.push(client);
      client.setEncoding('latin1').on('data', (text: string) => {
        if (text.includes('foo')) answers++;
      });
      await once(client, 'connect');
      client.write(`GET ${path} HTTP/1.1\r\nhost: test\r\n\r\n`);
    };
    for (let wave = 0; wave < 10; wave++) {
      await Promise.all(Array.from({ length: 200 }, () => askFrom('/')));
      await Promise.all(Array.from({ length: 100 }, () => askFrom('/slow')));
    }
    await eventually(() => waiting.length === 1_000 && answers === 2_000);
    await stopped(here);
    expect(here.inFlight()).toBe(1_000);
    for (const response of waiting) response.end('foo');
    await here.coord.join();
    await eventually(() => answers === 3_000);
    for (const client of clients) client.destroy();
  });
});
