/** `createPool`: workers in one call, closed at the program's stop. */

import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Coordinator, LooperThread } from 'allstop';
import {
  createPool,
  InvalidArgumentError,
  type Pool,
  type PoolOptions,
  UnavailableError,
} from 'allstop/pool';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { errorOf, module } from '../../support/clusters.ts';
import { eventually } from '../../support/eventually.ts';
import { turn } from '../../support/gate.ts';
import { Visits } from '../../support/visits.ts';

type Tasks = typeof import('../../fixtures/cluster-tasks.mjs');

const visits = new Visits();
let pools: Pool[] = [];

beforeEach(() => visits.open());
afterEach(async () => {
  const closing = pools.map((pool) => pool.close());
  pools = [];
  await visits.close();
  await Promise.all(closing);
});

function start(options?: PoolOptions): Pool<Tasks> {
  const pool = createPool<Tasks>(module, { workers: 1, ...options });
  pools.push(pool);
  return pool;
}

describe('createPool', () => {
  it('runs the functions of a module, as its types say', async () => {
    const pool = start({ workers: 2, retries: 0 });
    const sum: number = await pool.run('add', [1, 2]);
    expect(sum).toBe(3);
    // @ts-expect-error a number is missing
    await pool.run('add', [1]);
    const later: number[] = [];
    for await (const each of pool.map('double', [1, 2])) later.push(each as number);
    expect(later).toEqual([2, 4]);
    await pool.resize(1);
    await pool.ready();
    expect(pool.workers).toHaveLength(1);
    expect(pool.stats().completed).toBe(4);
  });

  it('refuses what it cannot use', () => {
    const path = './tasks.js' as unknown as URL;
    expect(() => createPool(path)).toThrow(
      /"module" argument must be an instance of URL.*new URL\('.\/tasks.js', import.meta.url\)/,
    );
    const wrong =
      (options: object): (() => unknown) =>
      () =>
        createPool(module, options);
    expect(wrong({ module })).toThrow('There is no option "options.module"');
    for (const drainMs of [0, 60_000]) {
      expect(wrong({ drainMs })).toThrow(InvalidArgumentError);
      expect(wrong({ drainMs, closeOnStop: undefined })).toThrow('options.drainMs is for');
    }
    const coord = new Coordinator();
    expect(wrong({ coordinator: coord, closeOnStop: coord })).toThrow(InvalidArgumentError);
    expect(wrong({ closeOnStop: {} })).toThrow('"options.closeOnStop" property must be');
    expect(wrong({ drainMs: -1 })).toThrow('"options.drainMs" is out of range');
  });
});

describe('closeOnStop', () => {
  it('lets what runs and what waits end, and takes calls until then', async () => {
    const coord = new Coordinator();
    const pool = start({ closeOnStop: coord, drainMs: 60_000 });
    const running = pool.run('hold', [visits.path, 'running']);
    const queued = pool.run('add', [1, 2]);
    const visit = await visits.next('running');
    coord.requestStop();
    await turn();
    const later = pool.run('add', [3, 4]);
    visit.pass();
    await running;
    expect(await Promise.all([queued, later])).toEqual([3, 7]);
    await coord.join();
    await expect(pool.run('add', [1, 2])).rejects.toThrow('The pool is closed');
  });

  it('lets a call end that was made before any worker was there', async () => {
    const coord = new Coordinator();
    const pool = start({ closeOnStop: coord, drainMs: 60_000 });
    const call = pool.run('add', [1, 2]);
    coord.requestStop();
    expect(await call).toBe(3);
    await coord.join();
  });

  it('cancels what has not ended within drainMs', async () => {
    const coord = new Coordinator();
    const pool = start({ closeOnStop: coord, drainMs: 0 });
    const running = errorOf((pool as Pool).run('untilAborted', [visits.path, 'running']));
    await visits.next('running');
    coord.requestStop();
    expect((await running).message).toBe('The pool was closed');
    await coord.join();
  });

  it('is a hook: one that is registered later uses the pool', async () => {
    const results = await Coordinator.run(async (coord) => {
      const pool = start({ closeOnStop: coord });
      const got: unknown[] = [];
      coord.onStop(async () => got.push(await pool.run('add', [1, 2])));
      await pool.ready();
      return got;
    });
    expect(results).toEqual([3]);
  });

  // A SIGTERM during the start: the exit code is the signal's, and nothing has failed.
  it('a body that waits for its workers ends with the stop', async () => {
    const never = new URL('data:text/javascript,await new Promise((r) => setTimeout(r, 1e9))');
    const ended = Coordinator.run(async (coord) => {
      const pool = createPool(never, { workers: 1, closeOnStop: coord });
      coord.requestStop();
      await pool.ready();
    });
    expect(await ended).toBe(undefined);
  });

  it.each(['cancelled', 'refused'])('a task whose call is %s ends with the stop', async (how) => {
    await Coordinator.run(async (coord) => {
      const pool: Pool = start({ closeOnStop: coord, drainMs: 0 });
      void coord.start(async () => {
        const running = pool.run('untilAborted', [visits.path, 'running']);
        if (how === 'cancelled') await running;
        await errorOf(running);
        await pool.run('add', [1, 2]);
      });
      await visits.next('running');
      coord.requestStop();
    });
  });

  it('an error of a function is one, even then', async () => {
    const ended = Coordinator.run(async (coord) => {
      const pool: Pool = start({ closeOnStop: coord });
      coord.requestStop();
      await pool.run('fail', ['no such page']);
    });
    await expect(ended).rejects.toThrow('no such page');
  });

  it('ends with a pool that is closed by hand', async () => {
    const coord = new Coordinator();
    const pool = start({ closeOnStop: coord });
    await pool.close();
    coord.requestStop();
    expect(coord.threads).toEqual([]);
  });
});

describe('the module `tasks.js` of which there is only `tasks.ts`', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sibling-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** A loader for a Node that loads no TypeScript: the files of these tests have no types. */
  const load = `import { readFileSync } from 'node:fs';
    export const load = (url, context, next) => /\\.[cm]?ts$/.test(url)
      ? { format: 'module', source: readFileSync(new URL(url)), shortCircuit: true }
      : next(url, context)`;
  const urlOf = (code: string): string =>
    `data:text/javascript;base64,${Buffer.from(code).toString('base64')}`;
  const register = `import { register } from 'node:module'; register('${urlOf(load)}')`;
  const execArgv = ['--import', urlOf(register)];
  const at = (name: string): URL => pathToFileURL(join(folder, name));

  it.each(['js', 'mjs', 'cjs'])('is that one: .%s', async (end) => {
    writeFileSync(at(`tasks.${end.replace('j', 't')}`), 'export const add = (a, b) => a + b');
    const pool = createPool(at(`tasks.${end}`), { workers: 1, execArgv });
    pools.push(pool);
    expect(await pool.run('add', [1, 2])).toBe(3);
  });

  it('is that one for spawn, fork and a LooperThread', async () => {
    const code = (name: string): string =>
      `import { writeFileSync } from 'node:fs'; const done = () => writeFileSync(${JSON.stringify(join(folder, name))}, '');`;
    writeFileSync(at('spawned.ts'), `${code('spawned')} done();`);
    writeFileSync(at('forked.ts'), `${code('forked')} done();`);
    writeFileSync(at('looped.ts'), `${code('looped')} export default () => done();`);
    const coord = new Coordinator();
    coord.spawn(at('spawned.js'), { execArgv });
    coord.fork(join(folder, 'forked.js'), [], { execArgv });
    await coord.join();
    expect(existsSync(at('spawned')) && existsSync(at('forked'))).toBe(true);
    // Its worker has the options of this process, whose Node may load no TypeScript.
    const looper = LooperThread.loop(coord, 60_000, at('looped.js'));
    await Promise.race([looper.join(), eventually(() => existsSync(at('looped')))]);
    coord.requestStop();
    const error = await coord.join().catch(String);
    expect(error ?? 'looped.ts').toContain('looped.ts');
  });

  it('is not there: the error is short and says so', async () => {
    const pool = createPool(at('tasks.js'), { workers: 1 });
    pools.push(pool);
    const error = await errorOf(pool.run('add', [1, 2]));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error.message).toMatch(/tasks\.js cannot be imported: there is no file/);
    expect(error.cause).toBeUndefined();
    expect(error.stack).not.toMatch(/onMessage|node:internal/);
  });
});
