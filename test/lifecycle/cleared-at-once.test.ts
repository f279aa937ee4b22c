// A stop that is cleared at once still ends the waits of all threads.

import { describe, expect, it } from 'vitest';
import { runScript, saidOf } from '../support/run-script.ts';

// Its joins leave a thread behind.
const options = { execArgv: ['--disable-warning=ALLSTOP_STRAGGLERS'] };

describe('a stop that is cleared at once', () => {
  it('is seen by every wait, signal and join of the thread that requested it', async () => {
    const ended = await runScript('cleared-at-once', ['same-thread', '10000'], options);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(saidOf(ended, 'seen')).toMatchObject({ rounds: 10_000 });
  });

  // Only Linux shows whether a thread is asleep and so has begun to wait.
  describe.runIf(process.platform === 'linux')(
    'is seen by every wait, signal and join of four JavaScript threads, and by a native one',
    () => {
      it.each([2_000])('in %i ms', seen);
      it.each([12_000])('in %i ms', { tags: 'long', timeout: 180_000 }, seen);
    },
  );

  async function seen(budgetMs: number): Promise<void> {
    const args = ['threads', '10000', String(budgetMs)];
    const ended = await runScript('cleared-at-once', args, options);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    const { rounds } = saidOf(ended, 'seen');
    expect(rounds).toBeGreaterThanOrEqual(50); // 3,000 and more on idle processors
    console.log('rounds:', rounds);
  }
});
