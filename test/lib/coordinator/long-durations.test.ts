// Node's timers fire at once beyond 2^31 ms, with a warning. The package's timers wait for any time,
// Infinity included.

import { Coordinator } from 'allstop';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { turn } from '../../support/gate.ts';

const durations = [
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32,
  Number.MAX_SAFE_INTEGER,
  2 ** 63,
  2 ** 64,
  1e300,
  Number.MAX_VALUE,
  Number.POSITIVE_INFINITY,
];

/** Longer than an overflowed timer takes to fire. */
function moment(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 20);
  });
}

const warnings: Error[] = [];
const warn = (warning: Error): void => {
  if (warning.name !== 'StragglersWarning') warnings.push(warning); // joins here leave threads behind
};
beforeAll(() => {
  process.on('warning', warn);
});
afterAll(() => {
  process.off('warning', warn);
  expect(warnings).toEqual([]);
});

describe.each(durations)('%d ms', (ms) => {
  it('waitForStop waits, and sees the stop', async () => {
    const coord = new Coordinator();
    let settled = false;
    const waiting = coord.waitForStop(ms).finally(() => {
      settled = true;
    });
    await moment();
    expect(settled).toBe(false);
    coord.requestStop();
    expect(await waiting).toBe(true);
  });

  it('waitForStopSync waits, and sees the stop', () => {
    const coord = new Coordinator();
    coord.stopAfter(60); // beyond the first slice
    expect(coord.waitForStopSync(ms)).toBe(true);
  });

  it('stopAfter does not stop', async () => {
    const coord = new Coordinator();
    const link = coord.stopAfter(ms);
    await moment();
    expect(coord.shouldStop()).toBe(false);
    link[Symbol.dispose]();
  });

  it('a join gives that long a grace', async () => {
    const coord = new Coordinator({ stopGracePeriodMs: ms });
    let end = (): void => {};
    coord.registerThread(
      new Promise<void>((resolve) => {
        end = resolve;
      }),
    );
    coord.requestStop();
    let settled = false;
    const joining = coord.join().finally(() => {
      settled = true;
    });
    await moment();
    expect(settled).toBe(false);
    end();
    await joining;
  });
});

describe('no time at all', () => {
  it.each([0, -0, Number.MIN_VALUE])('%d ms polls', async (ms) => {
    const coord = new Coordinator({ stopGracePeriodMs: ms });
    expect(await coord.waitForStop(ms)).toBe(false);
    expect(coord.waitForStopSync(ms)).toBe(false);
    coord.registerThread(new Promise(() => {}), { name: 'straggler' });
    coord.stopAfter(ms);
    expect(coord.waitForStopSync()).toBe(true);
    expect(await coord.waitForStop(ms)).toBe(true);
    expect(coord.waitForStopSync(ms)).toBe(true);
    await turn();
    expect(coord.stopRecord?.error).toMatchObject({ code: 'ERR_ALLSTOP_DEADLINE_EXCEEDED' });
    await expect(coord.join()).rejects.toBe(coord.stopRecord?.error);
  });
});
