// A stop that is cleared at once still ends the waits of all threads.

import { describe, expect, it } from 'vitest';
import { runScript, saidOf } from '../support/run-script.ts';

// Its joins leave a thread behind.
const options = { execArgv: ['--disable-warning=ALLSTOP_STRAGGLERS'] };

describe('a stop that is cleared at once', () => {
  describe('is seen by every wait, signal and join of the thread that requested it', () => {
    it.each([2_000])('%i times', seenByItself);
    it.each([10_000])('%i times', { tags: 'long' }, seenByItself);
  });

  async function seenByItself(rounds: number): Promise<void> {
    const ended = await runScript('cleared-at-once', ['same-thread', String(rounds)], options);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(saidOf(ended, 'seen')).toMatchObject({ rounds });
  }

  // Only Linux shows whether a thread is asleep and so has begun to wait.
  describe.runIf(process.platform === 'linux')(
    'is seen by every wait, signal and join of four JavaScript threads, and by a native one',
    () => {
      it.each([500])('in %i ms', seen);
      it.each([12_000])('in %i ms', { tags: 'long', timeout: 180_000 }, seen);
    },
  );

  async function seen(budgetMs: number): Promise<void> {
    const args = ['threads', '10000', String(budgetMs)];
    const ended = await runScript('cleared-at-once', args, options);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    const { rounds } = saidOf(ended, 'seen');
    expect(rounds).toBeGreaterThanOrEqual(50); // as many at the least, however slow the machine
    console.log('rounds:', rounds);
  }
});
