// The example `server` as users run it: a process, real requests, real signals, and what hangs.

import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, type ClientRequest, get, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { Program } from '../support/program.ts';

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'server-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

type Answer = { status: number | undefined; body: string };

async function answerOf(sent: ClientRequest): Promise<Answer> {
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let body = '';
  for await (const text of response.setEncoding('utf8')) body += text;
  return { status: response.statusCode, body };
}

/** A request on a connection of its own. */
const ask = async (url: string): Promise<Answer> => answerOf(get(url, { agent: false }));

/** A POST whose headers are sent, and whose body is not: it is in flight as long as we like. */
async function begin(
  url: string,
  agent: Agent | false = false,
): Promise<{ finish(body: string): Promise<Answer> }> {
  const sent = request(url, {
    method: 'POST',
    agent,
    headers: { 'content-type': 'application/json', expect: '100-continue' },
  });
  sent.flushHeaders();
  const answer = answerOf(sent);
  answer.catch(() => {}); // whoever calls `finish` gets it
  await once(sent, 'continue'); // the server has the request
  return {
    finish: async (body) => {
      sent.end(body);
      return answer;
    },
  };
}

/** Resolves when the server no longer accepts. (A connection that it has not accepted is reset.) */
async function refusal(url: string): Promise<void> {
  for (;;) {
    const error = await ask(url).then(
      () => undefined,
      (reason: NodeJS.ErrnoException) => reason,
    );
    if (error?.code === 'ECONNREFUSED') return;
    if (error !== undefined && error.code !== 'ECONNRESET') throw error;
    await new Promise((resolve) => setTimeout(resolve, 10)); // asking costs both processes
  }
}

/** The example, with a port of its own. `env`: its options. */
const program = (env: Record<string, string>): Program =>
  new Program('examples/server/main.mjs', [], { PORT: '0', ...env });

async function start(name: string, env: Record<string, string> = {}) {
  const log = join(directory, `${name}.log`);
  const server = program({ AUDIT: log, ...env });
  const [, url] = await server.writes(/listening on (.*)\n/);
  const audited = (): { url: string; status: number }[] =>
    readFileSync(log, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { url: string; status: number });
  return { server, url: url as string, audited };
}

describe.skipIf(process.platform === 'win32')('a server that gets SIGTERM', () => {
  it('accepts no more, finishes what is in flight, and closes in order', async () => {
    const { server, url, audited } = await start('order');
    expect(await ask(`${url}/health`)).toEqual({ status: 200, body: '' });
    const inFlight = await begin(`${url}/primes`);
    server.kill('SIGTERM');
    await refusal(`${url}/health`);
    // The pool is there for it, and the audit log, though everything has been told to stop.
    expect(await inFlight.finish('{"below":1000}')).toEqual({
      status: 200,
      body: '{"primes":168}',
    });
    const end = await server.ended;
    expect(end).toMatchObject({ code: 143, stderr: '' });
    expect(audited().at(-1)).toMatchObject({ url: '/primes', status: 200 });
  });

  it('has audited all requests, though its audit process took long to start', async () => {
    const slow = new URL('./scripts/slow-audit.mjs', import.meta.url).href;
    const env = { NODE_OPTIONS: `--import=${slow}` };
    const { server, url, audited } = await start('slow-audit', env);
    await ask(`${url}/health`);
    server.kill('SIGTERM');
    expect(await server.ended).toMatchObject({ code: 143, stderr: '' });
    expect(audited()).toMatchObject([{ url: '/health', status: 200 }]);
  });

  it('says 503 at /health and still answers, as long as its load balancer wants', async () => {
    const { server, url, audited } = await start('drain', { DRAIN_MS: '3000' });
    server.kill('SIGINT');
    let health = await ask(`${url}/health`);
    while (health.status === 200) health = await ask(`${url}/health`); // the signal is on its way
    expect(health).toEqual({ status: 503, body: '' });
    const late = await begin(`${url}/primes`);
    expect(await late.finish('{"below":100}')).toEqual({ status: 200, body: '{"primes":25}' });
    await refusal(`${url}/health`);
    expect(await server.ended).toMatchObject({ code: 130, stderr: '' });
    expect(audited()).toContainEqual(expect.objectContaining({ url: '/health', status: 503 }));
  });

  it('closes the connection of a client that never finishes its request', async () => {
    const { server, url } = await start('slow-client', { GRACE_MS: '2000' });
    const { finish } = await begin(`${url}/primes`);
    server.kill('SIGTERM');
    await server.writes(/ALLSTOP_REQUESTS_CUT.* 'server' has cut 1 request /, 'stderr');
    await expect(finish('{}')).rejects.toThrow(/socket hang up|ECONNRESET|EPIPE/);
    expect(await server.ended).toMatchObject({ code: 143 });
  });

  it('closes the connection of a client that has sent no request', async () => {
    const { server, url } = await start('no-request');
    const silent = connect(Number(new URL(url).port), '127.0.0.1');
    await once(silent, 'connect');
    // Connections are accepted in their order: the server has the silent one, too.
    await ask(`${url}/health`);
    server.kill('SIGTERM');
    expect(await server.ended).toMatchObject({ code: 143, stderr: '' });
    silent.destroy();
  });

  it('closes a connection that its client keeps alive once it has had its answer', async () => {
    const { server, url } = await start('kept-alive');
    const agent = new Agent({ keepAlive: true });
    const inFlight = await begin(`${url}/primes`, agent);
    server.kill('SIGTERM');
    await refusal(`${url}/health`);
    expect(await inFlight.finish('{"below":100}')).toMatchObject({ status: 200 });
    expect(await server.ended).toMatchObject({ code: 143, stderr: '' });
    agent.destroy();
  });

  it('ends with the error of a child that fails, and says which', async () => {
    const missing = join(directory, 'no', 'such', 'folder');
    const end = await program({ AUDIT: missing }).ended;
    expect(end.code).toBe(1);
    expect(end.stderr).toMatch(/ENOENT: no such file or directory, open .*no\/such\/folder/);
  });

  it('while it starts ends quietly', async () => {
    const log = join(directory, 'starting.log');
    const server = program({ AUDIT: log });
    await eventually(() => existsSync(log)); // the child has started, the pool hardly
    server.kill('SIGTERM');
    expect(await server.ended).toMatchObject({ code: 143, stderr: '' });
  });

  it('ends what was opened when its port is taken', async () => {
    const { server, url } = await start('first');
    const { port } = new URL(url);
    const log = join(directory, 'second.log');
    const end = await program({ PORT: port, AUDIT: log }).ended;
    expect([end.code, end.stderr]).toEqual([1, expect.stringContaining('EADDRINUSE')]);
    server.kill('SIGTERM');
    expect((await server.ended).code).toBe(143);
  });
});

const GRACE_MS = 2_000;
// Far less than the hang, which has no end; bench/server-stop.mjs measures how late it is.
const LATE_MS = 10_000;

// The culprit is named by the recipe where it ends it itself, else by exitAfterStop.
describe.runIf(process.platform === 'linux')('a server in which', () => {
  const ways: [string, RegExp][] = [
    ['a pool worker spins', /Still running, without a request: spin/],
    ['a pool worker is blocked in native code', /Worker 0 is blocked in native code/],
    ['a worker thread spins', /- 'spinner' \(worker \d+\): running for /],
    ['a native thread is blocked', /- 'reader' \(native \d+\): running for .*, is blocked in /],
    ['a child ignores SIGTERM', /The child process \d+ has not ended: it is killed/],
    ['the main thread computes', /allstop: the main thread is computing/],
  ];

  it.each(ways)(
    '%s ends within its grace, and names it',
    { tags: 'long' },
    async (way, culprit) => {
      const end = await stopped(way);
      expect(end.stderr).toMatch(culprit);
      expect(end.code).toBe(143);
      expect(end.ms).toBeLessThan(GRACE_MS + LATE_MS);
    },
  );

  it('the child ignores SIGTERM has killed it when it ends', async () => {
    const end = await stopped('a child ignores SIGTERM', 1_000);
    expect(end).toMatchObject({ code: 143, stderr: expect.stringContaining('it is killed') });
    expect(() => process.kill(end.child, 0)).toThrow('ESRCH');
  });

  async function stopped(way: string, graceMs = GRACE_MS) {
    const server = new Program('test/recipes/scripts/hanging-server.mjs', [way, String(graceMs)]);
    const [, url, child] = await server.writes(/listening on (.*)\n[^]*with child (\d+)\n/);
    if (way === 'the main thread computes') {
      get(`${url}/spin`, { agent: false }).on('error', () => {}); // never answered
      await server.writes(/spinning\n/);
    }
    const asked = performance.now();
    server.kill('SIGTERM');
    const end = await server.ended;
    return { ...end, child: Number(child), ms: performance.now() - asked };
  }
});
