/** Options of Node's workers and child processes that LocalStrategy passes on. */

import { SHARE_ENV } from 'node:worker_threads';
import {
  ClusterCoordinator,
  InvalidArgumentError,
  LocalStrategy,
  type LocalStrategyOptions,
} from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import { errorOf } from '../../support/clusters.ts';

const module = new URL('../../fixtures/cluster-worker-tasks.mjs', import.meta.url);
const make = (options: object): LocalStrategy => new LocalStrategy({ module, ...options });

async function givenTo(options: Partial<LocalStrategyOptions>): Promise<any> {
  await using cluster = new ClusterCoordinator(make({ workers: 1, ...options }));
  return await cluster.run('given');
}

describe('each worker', () => {
  it.each(['thread', 'process'] as const)('as %s has argv, env and execArgv', async (isolation) => {
    const execArgv = ['--no-warnings'];
    const own = {
      execArgv: [...execArgv],
      argv: ['--size', '4'],
      env: { ONLY: 'this', NO: undefined },
    };
    const strategy = make({ workers: 1, isolation, ...own });
    own.execArgv.push('changed');
    own.argv.push('changed');
    own.env.ONLY = 'changed';
    await using cluster = new ClusterCoordinator(strategy);
    const found: any = await cluster.run('given');
    expect(found).toMatchObject({ argv: ['--size', '4'], execArgv, only: 'this' });
    expect(found.path).toBeUndefined();
    expect(found.workerData ?? undefined).toBeUndefined();
  });

  it.each(['thread', 'process'] as const)(
    'as %s has those of this process by default',
    async (isolation) => {
      const found = await givenTo({ isolation });
      expect(found).toMatchObject({ argv: [], path: process.env['PATH'] });
      expect(found.workerData ?? undefined).toBeUndefined();
    },
  );

  it('as thread has workerData, which shares memory', async () => {
    const words = new Int32Array(new SharedArrayBuffer(4));
    const found = await givenTo({ workerData: { words, of: 'the test' } });
    expect(found.workerData.of).toBe('the test');
    found.workerData.words[0] = 7;
    expect(words[0]).toBe(7);
  });

  it('as thread may share the environment', async () => {
    process.env['ONLY'] = 'shared';
    const found = await givenTo({ env: SHARE_ENV });
    delete process.env['ONLY'];
    expect(found.only).toBe('shared');
  });

  it('as thread dies of its own limits, and harms nobody', async () => {
    await using cluster = new ClusterCoordinator(
      make({ workers: 1, resourceLimits: { maxOldGenerationSizeMb: 24 } }),
    );
    const error = await errorOf(cluster.run('hoard', [512], { retries: 0 }));
    expect(error.message).toMatch(/'hoard' lost its worker once.*memory/);
    expect(await cluster.run('where')).toMatchObject({ ran: 1 });
  });
});

describe('an option that workers cannot have', () => {
  it.each([
    ['workerData', { isolation: 'process', workerData: 1 }],
    ['resourceLimits', { isolation: 'process', resourceLimits: { stackSizeMb: 4 } }],
    ['SHARE_ENV', { isolation: 'process', env: SHARE_ENV }],
    ['workerData cannot be cloned', { workerData: () => {} }],
    [': options.workerData.log: log() {} could', { workerData: { log() {} } }],
    ['definition', { definition: 'two words' }],
    ['setup must be the name', { setup: '' }],
    ['teardown must be the name', { teardown: '' }],
  ])('is an InvalidArgumentError at construction: %s', (text, options) => {
    expect(() => make(options)).toThrow(InvalidArgumentError);
    expect(() => make(options)).toThrow(text);
  });

  it.each([
    ['ERR_INVALID_ARG_TYPE', 'options.argv', { argv: 'one' }],
    ['ERR_INVALID_ARG_TYPE', 'options.argv[1]', { argv: ['a', 1] }],
    ['ERR_INVALID_ARG_TYPE', 'options.execArgv', { execArgv: {} }],
    ['ERR_INVALID_ARG_TYPE', 'options.env', { env: 'PATH' }],
    ['ERR_INVALID_ARG_TYPE', 'options.env.PORT', { env: { PORT: 80 } }],
    ['ERR_INVALID_ARG_TYPE', 'options.setup', { setup: () => {} }],
    ['ERR_INVALID_ARG_TYPE', 'options.teardown', { teardown: 1 }],
    ['ERR_INVALID_ARG_TYPE', 'options.definition', { definition: 1 }],
    ['ERR_INVALID_ARG_TYPE', 'options.resourceLimits', { resourceLimits: 4 }],
    [
      'ERR_INVALID_ARG_VALUE',
      'maxOldGenerationSizeMb',
      { resourceLimits: { maxOldGenerationMb: 4 } },
    ],
    ['ERR_OUT_OF_RANGE', 'stackSizeMb', { resourceLimits: { stackSizeMb: 0 } }],
    ['ERR_INVALID_ARG_VALUE', 'teardown', { tearDown: 'x' }],
  ])('is refused: %s, %s', (code, text, options) => {
    expect(() => make(options)).toThrow(expect.objectContaining({ code }));
    expect(() => make(options)).toThrow(text);
  });

  it('keeps its secrets when the strategy is printed', async () => {
    const { inspect } = await import('node:util');
    expect(inspect(make({ env: { PASSWORD: 'secret' } }))).not.toContain('secret');
  });

  it('as Node’s own refusal fails the cluster', async () => {
    await using cluster = new ClusterCoordinator(
      make({ workers: 1, execArgv: ['--no-such-option'] }),
    );
    const error = await errorOf(cluster.run('where'));
    expect(error.code).toBe('ERR_ALLSTOP_UNAVAILABLE');
    expect(error.message).toContain('--no-such-option');
  });
});
