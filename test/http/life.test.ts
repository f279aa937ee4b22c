/** When `closeOnStop` closes, when it waits, what it reports, and what it leaves behind: nothing. */

import { once } from 'node:events';
import http, { type ServerResponse } from 'node:http';
import { connect, type Server } from 'node:net';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import { Coordinator } from 'allstop';
import { type CloseOnStopOptions, closeOnStop } from 'allstop/http';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { gate, isPending, turn } from '../support/gate.ts';
import { Program } from '../support/program.ts';
import { ask, keepAlive, listen, serve } from '../support/servers.ts';
import { warningsDuring } from '../support/warnings.ts';

const FOREVER_MS = 2 ** 31 - 1;
const EVENTS = ['request', 'checkContinue', 'upgrade', 'connect', 'connection', 'secureConnection'];
const MORE = ['session', 'stream', 'listening', 'close', 'newListener', 'removeListener'];

const listeners = (server: Server): number[] =>
  [...EVENTS, ...MORE].map((event) => server.listenerCount(event));

/** A server with a request in flight, until `answer` is opened. */
async function busy(options: CloseOnStopOptions = {}) {
  const answer = gate();
  const served = await serve(
    'http',
    (_, response) => void answer.opened.then(() => response.end('foo')),
  );
  const coord = new Coordinator();
  const closing = closeOnStop(served.server, coord, { closeMs: FOREVER_MS, ...options });
  const answered = ask(served, { agent: keepAlive('http') });
  await once(served.server, 'request');
  return { ...served, coord, closing, answer, answered };
}

describe('a run whose function has returned', () => {
  const codesOf = async (body: (coord: Coordinator) => unknown): Promise<unknown[]> => {
    const warnings = await warningsDuring(async () => void (await Coordinator.run(body)));
    return warnings.map((warning) => Reflect.get(warning, 'code'));
  };

  it('closes a server at once that nobody has used, and warns', async () => {
    const codes = await codesOf(async (coord) => {
      const served = await serve('http', (_, response) => response.end('foo'));
      closeOnStop(served.server, coord);
    });
    expect(codes).toEqual(['ALLSTOP_SERVER_CLOSED']);
  });

  it('warns of a server that listens later, too', async () => {
    const server = http.createServer();
    const codes = await codesOf((coord) => {
      closeOnStop(server, coord);
      coord.onStop(async () => {
        await once(server.listen(0, 'localhost'), 'listening');
      });
    });
    expect([codes, server.listening]).toEqual([['ALLSTOP_SERVER_CLOSED'], false]);
  });

  it('warns of no server that was used, and of none that a stop has closed', async () => {
    const codes = await codesOf(async (coord) => {
      const served = await serve('http', (_, response) => response.end('foo'));
      closeOnStop(served.server, coord);
      await ask(served);
    });
    const stopped = await codesOf(async (coord) => {
      closeOnStop((await serve('http', () => {})).server, coord);
      coord.requestStop();
    });
    expect([codes, stopped]).toEqual([[], []]);
  });

  it('warns of no server beside which a thread has done its work', async () => {
    const codes = await codesOf(async (coord) => {
      closeOnStop((await serve('http', () => {})).server, coord);
      void coord.start(turn);
    });
    expect(codes).toEqual([]);
  });
});

describe('the drain', () => {
  const health = (coord: Coordinator) => (_: unknown, response: ServerResponse) => {
    response.writeHead(coord.shouldStop() ? 503 : 200).end();
  };

  it('goes on accepting, so that a load balancer sees 503, and ends with the server', async () => {
    const coord = new Coordinator();
    const served = await serve('http', health(coord));
    closeOnStop(served.server, coord, { drainMs: FOREVER_MS });
    expect(await ask(served)).toMatchObject({ status: 200 });
    coord.requestStop();
    const kept = { agent: keepAlive('http') };
    expect(await ask(served, kept)).toMatchObject({ status: 503, connection: 'keep-alive' });
    const joined = coord.join();
    expect(await isPending(joined)).toBe(true);
    kept.agent.destroy();
    served.server.close(); // by the program
    await joined;
  });

  it('lasts drainMs, from which closeMs is counted', async () => {
    const here = await busy({ drainMs: 200, closeMs: 100 });
    const asked = performance.now();
    const lost = Promise.allSettled([here.answered]);
    const warnings = await warningsDuring(async () => {
      here.coord.requestStop();
      await eventually(() => !here.server.listening);
      expect(performance.now() - asked).toBeGreaterThanOrEqual(199);
      await here.coord.join();
    });
    expect(performance.now() - asked).toBeGreaterThanOrEqual(299);
    expect(warnings).toMatchObject([{ message: expect.stringContaining('after 100 ms') }]);
    expect(await lost).toMatchObject([{ reason: { code: 'ECONNRESET' } }]);
  });

  it('goes on when the stop is cleared, and a second stop comes meanwhile', async () => {
    const coord = new Coordinator();
    const served = await serve('http', health(coord));
    closeOnStop(served.server, coord, { drainMs: FOREVER_MS });
    coord.requestStop();
    await eventually(() => coord.threads.some(({ kind }) => kind === 'hook'));
    await turn();
    coord.clearStop();
    expect(await ask(served)).toMatchObject({ status: 200 });
    coord.requestStop();
    served.server.close();
    await coord.join();
  });
});

describe('a server that', () => {
  it('does not listen at the stop is closed as soon as it does', async () => {
    const server = http.createServer();
    const coord = new Coordinator();
    closeOnStop(server, coord, { drainMs: FOREVER_MS });
    coord.requestStop();
    await coord.join();
    const closed = once(server, 'close');
    await listen(server);
    await closed;
    await coord.join();
    expect(server.listening).toBe(false);
  });

  it('begins to listen when `run` has ended is closed, so that the program can end', async () => {
    const server = http.createServer();
    await Coordinator.run((coord) => void closeOnStop(server, coord));
    const closed = once(server, 'close');
    await listen(server);
    await closed;
  });

  it.each([false, true])(
    'listens again serves the next coordinator (the first closing disposed of: %s)',
    async (isDisposed) => {
      const server = http.createServer(
        (_, response) => void answer.opened.then(() => response.end()),
      );
      const answer = gate();
      const [first, next] = [new Coordinator(), new Coordinator()];
      const ended = closeOnStop(server, first);
      first.requestStop();
      await first.join();
      const closing = closeOnStop(server, next);
      server.once('listening', () => isDisposed && ended[Symbol.dispose]());
      const port = await listen(server);
      await turn().then(turn);
      expect(server.listening).toBe(true);
      const answered = ask({ server, port, kind: 'http' });
      await eventually(() => closing.inFlight === 1);
      next.requestStop();
      answer.open();
      await answered;
      await next.join();
      expect(server.listening).toBe(false);
    },
  );

  it('the program has closed is waited for', async () => {
    const here = await busy();
    here.server.close();
    here.coord.requestStop();
    const joined = here.coord.join();
    expect(await isPending(joined)).toBe(true);
    here.answer.open();
    expect(await here.answered).toMatchObject({ connection: 'close', body: 'foo' });
    await joined;
  });

  it('two coordinators close, one of them twice, is closed once, and left as it was', async () => {
    const here = await busy({ name: 'one' });
    const other = new Coordinator();
    const closings = [
      here.closing,
      closeOnStop(here.server, here.coord, { name: 'two' }),
      closeOnStop(here.server, other, { name: 'three' }),
    ];
    expect(closings.map(({ inFlight }) => inFlight)).toEqual([1, 1, 1]);
    here.coord.requestStop();
    other.requestStop();
    await eventually(() => !here.server.listening);
    here.answer.open();
    expect(await here.answered).toMatchObject({ connection: 'close' });
    await Promise.all([here.coord.join(), other.join()]);
    expect(Object.hasOwn(here.server, 'closeIdleConnections')).toBe(false);
  });

  it('listens again at once after a stop with no connection, and answers', async () => {
    const coord = new Coordinator();
    const server = http.createServer((_, response) => void response.end('foo'));
    closeOnStop(server, coord);
    await listen(server);
    coord.requestStop();
    await coord.join();
    coord.clearStop();
    const client = connect(await listen(server), '127.0.0.1');
    client.end('GET / HTTP/1.0\r\n\r\n');
    expect(await text(client)).toContain('foo');
    coord.requestStop();
    await coord.join();
  });

  it('listens again after clearStop() is closed at the next stop', async () => {
    const coord = new Coordinator();
    const server = http.createServer((_, response) => void response.end('foo'));
    closeOnStop(server, coord);
    for (let round = 0; round < 3; round++) {
      const port = await listen(server);
      const served = { server, port, kind: 'http' as const };
      expect(await ask(served, { agent: keepAlive('http') })).toMatchObject({
        connection: 'keep-alive',
      });
      coord.requestStop();
      await coord.join();
      expect(server.listening).toBe(false);
      coord.clearStop();
    }
  });

  it('holds up nothing keeps its event loop alive while it is closed (unref)', async () => {
    const program = new Program('test/http/scripts/unref.mjs');
    expect(await program.ended).toMatchObject({ code: 0, stdout: 'foo\nclosed\n', stderr: '' });
  });

  it('is shared by the workers of node:cluster is closed by each of them', async () => {
    const program = new Program('test/http/scripts/cluster.mjs');
    expect(await program.ended).toMatchObject({ code: 0, stdout: 'foo foo\nclosed\n', stderr: '' });
  });
});

describe('options.close', () => {
  it('takes the place of server.close(), and requests in flight are waited for', async () => {
    let calls = 0;
    const here = await busy({
      close: () => {
        calls++;
        here.server.close();
      },
    });
    here.coord.requestStop();
    await eventually(() => !here.server.listening);
    const joined = here.coord.join();
    expect(await isPending(joined)).toBe(true);
    here.answer.open();
    expect(await here.answered).toMatchObject({ connection: 'close' });
    await joined;
    expect(calls).toBe(1);
  });

  it('that fails is an error of the hook, after the requests have ended', async () => {
    const failure = new Error('no database');
    const here = await busy({
      close: () => {
        throw failure;
      },
    });
    here.coord.requestStop();
    const joined = here.coord.join();
    await eventually(() => !here.server.listening); // it is closed all the same
    here.answer.open();
    expect(await here.answered).toMatchObject({ body: 'foo' });
    await expect(joined).rejects.toBe(failure);
  });

  it('that closes a server which is closed already is no error', async () => {
    const server = http.createServer();
    const coord = new Coordinator();
    const close = async (): Promise<void> =>
      new Promise((resolve, reject) => {
        server.close((error) => (error === undefined ? resolve() : reject(error)));
      });
    closeOnStop(server, coord, { close });
    coord.requestStop();
    await coord.join();
  });

  it.each([0, 1])(
    'that hangs is left alone after closeMs (requests in flight: %i)',
    async (count) => {
      const here = await busy({ closeMs: 20, close: async () => new Promise(() => {}) });
      const lost = Promise.allSettled([here.answered]);
      if (count === 0) {
        here.answer.open();
        await lost;
        await eventually(() => here.closing.inFlight === 0);
      }
      const warnings = await warningsDuring(async () => {
        here.coord.requestStop();
        await here.coord.join();
      });
      const message = expect.stringMatching(
        new RegExp(`cut ${count} request.*its close\\(\\) has not`),
      );
      expect(warnings).toMatchObject([{ code: 'ALLSTOP_REQUESTS_CUT', message }]);
      expect(here.server.listening).toBe(false);
      await lost;
    },
  );
});

it('an error of options.close that comes after closeMs is one of the hook, too', async () => {
  const closing = gate();
  const here = await busy({ closeMs: 20, close: async () => closing.opened });
  const lost = Promise.allSettled([here.answered]);
  await warningsDuring(async () => {
    here.coord.requestStop();
    await here.coord.join();
  });
  closing.fail(new RangeError('late'));
  await eventually(() => here.coord.stopRecord?.suppressedCount === 1);
  expect(here.coord.stopRecord?.suppressed).toMatchObject([
    { error: { message: 'late' }, requester: { via: 'hook', threadName: 'server' } },
  ]);
  await lost;
});

describe('disposal', () => {
  it('takes the hook and all listeners off', async () => {
    const server = http.createServer();
    server.on('upgrade', () => {});
    const before = listeners(server);
    const coord = new Coordinator();
    const closing = closeOnStop(server, coord);
    server.on('checkContinue', () => {});
    closing[Symbol.dispose]();
    closing[Symbol.dispose]();
    server.removeAllListeners('checkContinue');
    expect(listeners(server)).toEqual(before);
    await listen(server);
    coord.requestStop();
    await coord.join();
    expect([server.listening, closing.inFlight]).toEqual([true, 0]);
  });

  it('lets a closing that has begun go on', async () => {
    const here = await busy();
    const before = listeners(here.server);
    here.coord.requestStop();
    await eventually(() => !here.server.listening);
    here.closing[Symbol.dispose]();
    expect(listeners(here.server)).not.toEqual(before);
    here.answer.open();
    expect(await here.answered).toMatchObject({ connection: 'close' });
    await here.coord.join();
    expect(here.server.listenerCount('newListener')).toBe(0);
  });
});

it('is shown with its name, what it does, and what is in flight', async () => {
  const { closing, coord, answer } = await busy({ name: 'api' });
  expect(inspect(closing)).toBe("Closing 'api' { open, 1 in flight }");
  coord.requestStop();
  answer.open();
  await coord.join();
});

describe('wrong arguments', () => {
  const server = http.createServer();
  const coord = new Coordinator();
  const wrong: [string, unknown[], string][] = [
    ['no server', [{}, coord], 'ERR_INVALID_ARG_TYPE'],
    ['an app', [{ server, close() {} }, coord], 'ERR_INVALID_ARG_TYPE'],
    ['no coordinator', [server, {}], 'ERR_INVALID_ARG_TYPE'],
    ['an unknown option', [server, coord, { drain: 1 }], 'ERR_INVALID_ARG_VALUE'],
    ['a negative drain', [server, coord, { drainMs: -1 }], 'ERR_OUT_OF_RANGE'],
    ['a text as closeMs', [server, coord, { closeMs: '1' }], 'ERR_INVALID_ARG_TYPE'],
    ['no function', [server, coord, { close: server }], 'ERR_INVALID_ARG_TYPE'],
    ['a number as name', [server, coord, { name: 1 }], 'ERR_INVALID_ARG_TYPE'],
  ];

  it.each(wrong)('are refused, and change nothing: %s', (_, args, code) => {
    const before = [listeners(server), coord.threads];
    expect(() => closeOnStop(...(args as Parameters<typeof closeOnStop>))).toThrow(
      expect.objectContaining({ code }),
    );
    expect([listeners(server), coord.threads]).toEqual(before);
  });

  it('say what a framework has instead of a server', () => {
    expect(() => closeOnStop((() => {}) as never, coord)).toThrow(
      'Received a function: pass app.server of Fastify',
    );
  });

  it('are named with the nearest option', () => {
    expect(() => closeOnStop(server, coord, { drain: 1 } as never)).toThrow(
      "Did you mean 'drainMs'?",
    );
  });
});
