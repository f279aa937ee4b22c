// Unreachable objects are freed, without a crash while native threads still use their state.

import { describe, expect, it } from 'vitest';
import { runScript, saidOf } from '../support/run-script.ts';

// A leak of 200 bytes a round, the smallest object of the package, would be 2 MB.
const FLAT_HEAP_MB = 1.5;
// A leak of the native state of one Coordinator per round would be 30 MB.
const FLAT_RSS_MB = 12;

// One malloc arena for all threads: each further arena would grow the process a little.
const options = { execArgv: ['--expose-gc'], env: { MALLOC_ARENA_MAX: '1' } };

describe('memory stays flat', () => {
  it('while 10,000 Coordinators are collected and native threads stop them', {
    tags: 'long',
    timeout: 180_000,
  }, async () => {
    const ended = await runScript('collected-coordinators', ['10000'], options);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    const { heapMb, rssMb, left, heard } = saidOf(ended, 'collected');
    expect(heapMb).toBeLessThan(FLAT_HEAP_MB);
    expect(rssMb).toBeLessThan(FLAT_RSS_MB);
    expect(left).toBeLessThan(200); // the rest goes with the next collection
    expect(heard).toBeGreaterThan(0);
  });

  it('while 5,000 Coordinators with a signal are collected that nobody ever stops', async () => {
    const ended = await runScript('collected-signals', ['5000'], options);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    const { heapMb, rssMb } = saidOf(ended, 'made');
    expect(heapMb).toBeLessThan(FLAT_HEAP_MB);
    expect(rssMb).toBeLessThan(FLAT_RSS_MB);
  });

  it('while 10,000 children with a hook are stopped and dropped, and their parent lives', {
    tags: 'long',
  }, async () => {
    const ended = await runScript('stopped-children', ['10000'], options);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    const { heapMb, ran, stopped } = saidOf(ended, 'served');
    expect({ ran, stopped }).toEqual({ ran: 22_000, stopped: false });
    expect(heapMb).toBeLessThan(FLAT_HEAP_MB);
  });

  it('while one Coordinator starts 100,000 tasks', async () => {
    const ended = await runScript('many-tasks', ['100000'], options);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    const { heapMb, rssMb, ...said } = saidOf(ended, 'ran');
    expect(said).toMatchObject({ threads: 0, recentlyEnded: 64, stopped: false });
    expect(heapMb).toBeLessThan(FLAT_HEAP_MB);
    expect(rssMb).toBeLessThan(3 * FLAT_RSS_MB); // V8's nursery grows, up to 24 MB
  });
});

describe('memory that only V8 gives back', () => {
  it('stays small while a server drops a child with a signal for each of 60,000 requests', {
    tags: 'long',
  }, async () => {
    const ended = await runScript('dropped-children', ['60000'], {});
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    // 30 MB; 180 MB and more if V8 is not told what a coordinator takes, as much again for as many.
    expect(saidOf(ended, 'made')['mostMb']).toBeLessThan(90);
  });
});

describe('memory is given back', () => {
  it('after a burst of items in a queue that never becomes empty', async () => {
    const ended = await runScript('queue-burst', ['1000000'], options);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    const { burst, oneLeft } = saidOf(ended, 'drained') as unknown as Record<string, number>;
    expect(burst).toBeGreaterThan(20); // of 64 MB of slots
    expect(oneLeft).toBeLessThan(burst! / 4);
  });
});
