// Runs examples/train as users do: in processes of its own, with real deaths and signals.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NatsServer } from '../../support/nats-server.ts';
import { NatsWorker } from '../../support/nats-worker.ts';

const main = fileURLToPath(new URL('../../../examples/train/main.mjs', import.meta.url));
let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'train-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

type Ended = { code: number | null; stdout: string; stderr: string };

class Example {
  /** Also the id of the process group of the example and its workers. */
  readonly pid: number;
  readonly ended: Promise<Ended>;
  readonly #onText = new Set<() => void>();
  #stdout = '';
  #stderr = '';

  constructor(args: string[], more: NodeJS.ProcessEnv = {}) {
    // Without the execArgv of the test runner.
    const { NODE_OPTIONS: _, ...own } = process.env;
    const env = { ...own, ...more };
    const child = spawn(process.execPath, [main, ...args], { env, cwd: directory, detached: true });
    this.pid = child.pid as number;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
      for (const look of this.#onText) look();
    });
    this.ended = new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code) => resolve({ code, stdout: this.#stdout, stderr: this.#stderr }));
    });
  }

  /** Resolves when stderr matches the pattern; rejects if the process ends before. */
  async writes(pattern: RegExp): Promise<void> {
    const seen = new Promise<void>((resolve) => {
      this.#onText.add(() => {
        if (pattern.test(this.#stderr)) resolve();
      });
    });
    const over = this.ended.then((ended) => {
      throw new Error(`It ended without writing ${pattern}: ${JSON.stringify(ended)}`);
    });
    await Promise.race([seen, over]);
  }
}

const run = (...args: string[]): Promise<Ended> => new Example(args).ended;

/** Whether the text is one XML element whose tags are closed in order. */
function isWellFormed(xml: string): boolean {
  const open: string[] = [];
  let roots = 0;
  const tag = /<(\/?)([\w:-]+)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>/g;
  for (const [, isEnd, name, , isEmpty] of xml.matchAll(tag)) {
    if (isEnd === '/') {
      if (open.pop() !== name) return false;
    } else {
      if (open.length === 0) roots += 1;
      if (isEmpty === '') open.push(name as string);
    }
  }
  const text = xml.replaceAll(tag, '');
  return open.length === 0 && roots === 1 && !/<|&(?!\w+;|#\d+;)/.test(text);
}

/** How many points the curves of training and validation have. */
function pointsOf(svg: string): (number | undefined)[] {
  return ['#4c78a8', '#f58518'].map((colour) => {
    const [, points] = new RegExp(`<path d="([^"]*)" stroke="${colour}"`).exec(svg) ?? [];
    return points?.split('L').length;
  });
}

const deathsOf = (svg: string): number => svg.match(/<line [^>]*stroke="#d62728"/g)?.length ?? 0;
const restartsOf = (svg: string): number => svg.match(/<path [^>]*fill="#333333"/g)?.length ?? 0;

function numberAfter(label: string, { stdout }: Ended): number {
  return Number(new RegExp(`${label} (\\d+(?:\\.\\d+)?)`).exec(stdout)?.[1]);
}

it('with --servers it converges on workers elsewhere, though one is killed', {
  tags: ['nats', 'long'],
}, async () => {
  const server = await NatsServer.start();
  const module = new URL('../../../examples/train/tasks.mjs', import.meta.url);
  const settings = { module, servers: server.address, cluster: 'train' };
  const workers = Array.from({ length: 3 }, () => new NatsWorker(settings));
  workers.push(new NatsWorker({ ...settings, job: 'ps' }));
  const options = ['--servers', server.address, '--workers', '3', '--kill', '1'];
  const ended = await run(...options, '--out', join(directory, 'nats.svg'));
  await Promise.all(workers.map((worker) => worker.kill()));
  await server.close();
  expect(ended.code, ended.stderr).toBe(0);
  expect(ended.stdout).toContain('Steps: 2000, on 3 workers (nats)');
  expect(numberAfter('accuracy', ended)).toBeGreaterThan(80);
  expect(numberAfter('killed:', ended)).toBe(1);
});

it('with --isolation nats it converges, though everything is killed', {
  tags: ['nats', 'long'],
}, async () => {
  const out = join(directory, 'local-nats.svg');
  const kills = ['--kill', '3', '--kill-ps', '1', '--kill-server', '1', '--kill-coordinator', '1'];
  const options = ['--isolation', 'nats', '--workers', '2', '--checkpoints', 'train', '--out', out];
  const env = { NATS_SERVER: NatsServer.binary };
  const ended = await new Example([...options, ...kills], env).ended;
  expect(ended.code, ended.stderr).toBe(0);
  expect(ended.stdout).toContain('Steps: 2000, on 2 workers (nats)');
  expect(numberAfter('accuracy', ended)).toBeGreaterThan(80);
  expect(numberAfter('Workers killed:', ended)).toBe(3);
  expect(numberAfter('Parameter server killed and started again:', ended)).toBe(1);
  expect(numberAfter('NATS server killed and started again:', ended)).toBe(1);
  expect(numberAfter('Coordinator killed and started again:', ended)).toBe(1);
  expect(numberAfter('Restarts:', ended)).toBe(2);
  const svg = readFileSync(out, 'utf8');
  expect(isWellFormed(svg)).toBe(true);
  expect(deathsOf(svg)).toBe(6);
  expect(restartsOf(svg)).toBe(2);
});

describe.each(['thread', 'process'])('with --isolation %s', (isolation) => {
  const tags = isolation === 'process' ? ['long'] : [];

  it.each([6])('it converges, though %i workers are killed', { tags }, converge);
  it.each([0])('it converges, though %i workers are killed', { tags: 'long' }, converge);
  async function converge(kill: number): Promise<void> {
    const out = join(directory, `${isolation}-${kill}.svg`);
    const options = ['--workers', '3', '--isolation', isolation, '--kill', `${kill}`];
    const ended = await run(...options, '--out', out);

    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stdout).toContain(`Steps: 2000, on 3 workers (${isolation})`);
    expect(ended.stdout).toContain(out);
    // An untrained network has a loss of about 1 and an accuracy of a third.
    expect(numberAfter('accuracy', ended)).toBeGreaterThan(80);
    expect(numberAfter('loss', ended)).toBeLessThan(0.25);
    expect(numberAfter('killed:', ended)).toBe(kill);
    const replaced = numberAfter('replaced:', ended);
    if (kill === 0) expect(replaced).toBe(0);
    else expect(replaced).toBeGreaterThanOrEqual(kill - 1); // the last kill may come when all is done
    expect(ended.stderr).toContain('2000 of 2000 steps');

    const svg = readFileSync(out, 'utf8');
    expect(isWellFormed(svg)).toBe(true);
    expect(svg.startsWith('<svg xmlns="http://www.w3.org/2000/svg"')).toBe(true);
    expect(pointsOf(svg)).toEqual([100, 100]);
    expect(deathsOf(svg)).toBe(kill);
  }

  it('Ctrl-C stops all of it, says why, and exits with 130', { tags }, async () => {
    const out = join(directory, `${isolation}-stopped.svg`);
    const options = ['--workers', '3', '--isolation', isolation, '--out', out];
    const example = new Example([...options, '--steps', '100000000', '--kill', '10000000']);
    await example.writes(/\] [1-9]\d* of 100000000 steps/);
    process.kill(-example.pid, 'SIGINT'); // to the whole process group, as a terminal does
    const { code, stdout, stderr } = await example.ended;
    expect({ code, stdout }, stderr).toEqual({ code: 130, stdout: '' });
    expect(stderr).toContain('the process received SIGINT');
    expect(stderr).not.toContain('Failed');
    expect(existsSync(out)).toBe(false);
    expect(() => process.kill(-example.pid, 0)).toThrow('ESRCH');
  });
});

it('goes on from its checkpoint when the coordinator is killed, too', {
  tags: 'long',
}, async () => {
  const out = join(directory, 'restarts.svg');
  const options = ['--workers', '3', '--kill', '3', '--kill-coordinator', '2', '--out', out];
  const ended = await run(...options, '--checkpoints', join(directory, 'checkpoints'));
  expect(ended.code, ended.stderr).toBe(0);
  expect(numberAfter('started again:', ended)).toBe(2);
  expect(numberAfter('accuracy', ended)).toBeGreaterThan(80);
  expect(numberAfter('loss', ended)).toBeLessThan(0.25);
  const svg = readFileSync(out, 'utf8');
  expect(isWellFormed(svg)).toBe(true);
  // A point of each curve may be lost with the program.
  for (const count of pointsOf(svg)) expect(count).toBeGreaterThan(90);
  expect(deathsOf(svg)).toBe(3 + 2);
  expect(restartsOf(svg)).toBe(2);
});

describe('wrong usage', { tags: 'long' }, () => {
  it.each([
    ['an unknown option', ['--nonsense'], "Unknown option '--nonsense'"],
    ['an argument', ['file'], "Unexpected argument 'file'"],
    ['no workers', ['--workers', '0'], "--workers takes an integer from 1 to 1024, not '0'"],
    ['no number', ['--steps', 'many'], "--steps takes an integer from 1, not 'many'"],
    ['half a worker', ['--kill', '0.5'], "--kill takes an integer from 0, not '0.5'"],
    ['too many deaths', ['--kill', '9', '--steps', '9'], '--kill 9 takes more than 9 steps'],
    ['no isolation', ['--isolation', 'none'], "--isolation is thread, process or nats, not 'none'"],
    [
      'a restart from nothing',
      ['--kill-coordinator', '1'],
      '--kill-coordinator needs --checkpoints',
    ],
    [
      'a parameter server from nothing',
      ['--isolation', 'nats', '--kill-ps', '1'],
      '--kill-ps needs --checkpoints',
    ],
    [
      'a parameter server of threads',
      ['--kill-ps', '1', '--checkpoints', 'c'],
      '--kill-ps needs --isolation nats without --servers',
    ],
    [
      'the NATS server of others',
      ['--isolation', 'nats', '--servers', '127.0.0.1:9', '--kill-server', '1'],
      '--kill-server needs --isolation nats without --servers',
    ],
    ['no folder', ['--out', '/no/such/x.svg'], 'No such folder: /no/such'],
    ['a folder', ['--out', tmpdir()], '--out takes a file, not a folder'],
  ])('is told, with exit code 2: %s', async (_, args, message) => {
    const { code, stdout, stderr } = await run(...args);
    expect(stderr).toContain(message);
    expect(stderr).toContain('Usage: node examples/train/main.mjs');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });

  it('is not to ask for --help', async () => {
    const { code, stdout, stderr } = await run('--help');
    expect(stdout).toContain('Usage: node examples/train/main.mjs');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});
