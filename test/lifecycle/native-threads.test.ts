// Native threads outlive the worker that started them, its Coordinator object, every environment
// that has loaded the addons, and process.exit().

import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { runScript, saidOf } from '../support/run-script.ts';

const require = createRequire(import.meta.url);

describe.each(['ends', 'terminated'])('a worker that %s', (how) => {
  it.each(['naturally', 'exit'])(
    'leaves its native threads running, also when the process ends (%s)',
    async (end) => {
      const ended = await runScript('native-outlives-worker', [how, end]);
      expect(ended).toMatchObject({ code: 5, signal: null, stderr: '' });
      const { results } = saidOf(ended, 'results');
      expect(results).toEqual({ requester: '0', poller: 'stopped', waiter: 'stopped' });
    },
  );
});

describe('a process ends while native threads poll, wait and hammer', () => {
  async function end(mode: string, rounds: number): Promise<void> {
    for (let round = 0; round < rounds; ++round) {
      const ended = await runScript('native-threads-at-exit', [mode]);
      expect(ended, `round ${round}`).toMatchObject({ code: 9, signal: null, stderr: '' });
    }
  }

  it.each([
    ['exit', 2],
    ['naturally', 1],
    ['worker', 1],
  ])('%s: with its exit code, %i times', end);

  // A crash would be a matter of luck. With these numbers of runs it was seen when it was possible.
  it.each([
    ['exit', 20],
    ['naturally', 10],
    ['worker', 10],
  ])('%s: with its exit code, %i times', { tags: 'long', timeout: 300_000 }, end);
});

describe.each([
  ['C++', 'test_addon'],
  ['C', 'survivor'],
])('a thread-safe function with a limit, in %s,', (_, name) => {
  it('refuses the calls above it, and makes those that it took', async () => {
    const { fill } = require(`../addons/test-addon/build/Release/${name}.node`);
    let calls = 0;
    const all = new Promise<void>((resolve) => {
      expect(fill(() => ++calls === 100 && resolve(), 100)).toBe('100 0');
    });
    expect(calls).toBe(0);
    await all;
  });
});

describe.each([
  ['C++', 'test_addon'],
  ['C', 'survivor'],
])('threads that post to JavaScript, in %s,', (_, addon) => {
  it.each([
    ['ends', 1],
    ['terminated', 1],
    ['closed', 0], // the worker closes the function, then ends
  ])('are refused once their worker %s', async (how, environmentEnds) => {
    const ended = await runScript('posts', [how, addon]);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(saidOf(ended, 'called')).toMatchObject({ threads: [0, 1, 2, 3] });
    expect(saidOf(ended, 'result')).toMatchObject({ result: 'refused', environmentEnds });
  });

  it('keep no process from its end', async () => {
    const ended = await runScript('posts', ['exit', addon]);
    expect(ended).toMatchObject({ code: 5, signal: null, stderr: '' });
  });
});
