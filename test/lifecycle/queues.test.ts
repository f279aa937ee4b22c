// Threads end, and objects are collected, in the middle of a wait at a queue: no item is lost, no
// waiting thread is forgotten, nothing crashes.

import { describe, expect, it } from 'vitest';
import { type Ended, runScript, saidOf } from '../support/run-script.ts';

const tell = (story: string, ...args: string[]): Promise<Ended> =>
  runScript('queues', [story, ...args], { execArgv: ['--expose-gc'] });

const FINE = { code: 0, signal: null, stderr: '' };

// A blocked thread gives way within 50 ms. If it did not, the test would never end.
const PROMPT_MS = 20_000;

describe.each(['dequeueSync', 'enqueueSync', 'dequeue', 'enqueue'])('workers in %s', (how) => {
  const terminated = 'are terminated, %s of them, and nothing is lost';
  it.each(['1'])(terminated, terminate);
  it.each(['5'])(terminated, { tags: 'long' }, terminate);
  async function terminate(count: string): Promise<void> {
    const ended = await tell('terminate', how, count);
    expect(ended).toMatchObject(FINE);
    expect(ended.durationMs).toBeLessThan(PROMPT_MS);
    expect(saidOf(ended, 'ended')).toMatchObject({
      codes: Array(Number(count)).fill(1),
      before: how.startsWith('enqueue') ? 1 : 0,
      item: 'later',
      end: 'OutOfRangeError',
    });
  }

  it('do not hold up process.exit()', async () => {
    const ended = await tell('exit', how, '3');
    expect(ended).toMatchObject({ code: 7, signal: null, stderr: '' });
    expect(ended.durationMs).toBeLessThan(PROMPT_MS);
  });
});

it('an op in a worker has printed all when its thread has ended', async () => {
  const ended = await runScript('printing-op', []);
  expect(ended).toMatchObject(FINE);
  const lines = ended.said.filter(({ event }) => event === 'line');
  expect(lines.map(({ line }) => line)).toEqual(Array.from({ length: 5_000 }, (_, n) => n));
  expect(saidOf(ended, 'exit')).toBeDefined();
  expect(saidOf(ended, 'ended')).toMatchObject({ closed: true });
});

describe('a worker that is terminated after it was told', () => {
  it('of an item passes it on', async () => {
    const ended = await tell('told of an item');
    expect(ended).toMatchObject(FINE);
    expect(saidOf(ended, 'ended')).toMatchObject({ item: 'the item', size: 0 });
  });

  it('of an item has not reserved it', async () => {
    const ended = await tell('told of an item, before a thread that blocks');
    expect(ended).toMatchObject(FINE);
    expect(saidOf(ended, 'ended')).toMatchObject({ item: '0|the item', size: 0 });
  });

  it('of room passes it on', async () => {
    const ended = await tell('told of room');
    expect(ended).toMatchObject(FINE);
    expect(saidOf(ended, 'ended')).toMatchObject({ items: ['first', 'second'], size: 0 });
  });

  it('does not hold up the end of a closed queue', async () => {
    const ended = await tell('the end of a closed queue');
    expect(ended).toMatchObject(FINE);
    expect(saidOf(ended, 'ended')).toMatchObject({ items: ['first'] });
  });
});

it('a worker that exits at the first of its items has not taken those of its other waits', async () => {
  const ended = await tell('exit at the first of several');
  expect(ended).toMatchObject(FINE);
  expect(saidOf(ended, 'ended')).toMatchObject({ items: [1, 2, 3, 4] });
});

describe('a queue that is collected', () => {
  it('is not while it is waited at, and is after that', async () => {
    const ended = await tell('collected while it waits');
    expect(ended).toMatchObject(FINE);
    const { early, late, collected } = saidOf(ended, 'ended');
    expect({ early, late }).toEqual({ early: 0, late: 50 });
    expect(collected).toBeGreaterThanOrEqual(49);
  });

  it('is there yet for those who have its handle', async () => {
    const ended = await tell('collected after its handle was read');
    expect(ended).toMatchObject(FINE);
    expect(saidOf(ended, 'ended')).toMatchObject({
      gone: ['kept'],
      name: 'kept',
      items: ['from here', 'from there'],
    });
  });

  it('is gone with the thread that had read its handle', async () => {
    const ended = await tell('stale handles');
    expect(ended).toMatchObject(FINE);
    expect(saidOf(ended, 'ended')).toMatchObject({ code: 'ERR_ALLSTOP_INVALID_HANDLE' });
  });
});

describe.each(['ends', 'terminated'])('native threads whose worker %s', (how) => {
  it('use its queue to the end', async () => {
    const ended = await tell('environment gone', how);
    expect(ended).toMatchObject(FINE);
    const { produced, consumed, wrong, missing } = saidOf(ended, 'ended');
    expect({ produced, wrong }).toEqual({ produced: ['20000|0', '20000|0'], wrong: 0 });
    expect(consumed).toMatch(/^11\|\d+$/);
    expect(missing).toBeLessThanOrEqual(4);
  });
});
