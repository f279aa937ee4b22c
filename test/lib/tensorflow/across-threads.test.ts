/** TensorFlow's Coordinator, behaviour by behaviour, across threads and languages. */

import { Coordinator, type CoordinatorOptions } from 'allstop';
import { afterEach, describe, expect, it } from 'vitest';
import { type Actor, type ActorKind, actor, pairs } from '../../support/actors.ts';
import { addon } from '../../support/test-addon.ts';

let dispose: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(dispose.map((each) => each()));
  dispose = [];
});

let made = 0;

function setUp([acting, looking]: [ActorKind, ActorKind], options?: CoordinatorOptions) {
  const coord = new Coordinator(options);
  const one: Actor = actor(acting, coord);
  const other: Actor = actor(looking, coord);
  dispose.push(one.dispose, other.dispose);
  return { coord, one, other };
}

/** A native thread that lives until it is released. */
function gated(coord: Coordinator): { name: string; release: () => void } {
  const name = `gated-${++made}`;
  addon.start(coord, 'gate', name);
  return { name, release: () => addon.openGate(name) };
}

const quick = ['this thread, a worker', 'a worker, this thread', 'a native thread, this thread'];
for (const pair of pairs) {
  const tags = quick.includes(pair.join(', ')) ? [] : ['long'];
  describe(`${pair[0]} acts, ${pair[1]} looks`, { tags }, () => tell(pair));
}

function tell(pair: [ActorKind, ActorKind]): void {
  it('request_stop: everybody should stop', async () => {
    const { one, other } = setUp(pair);
    expect(await other.shouldStop()).toBe(false);
    await one.requestStop();
    expect(await other.shouldStop()).toBe(true);
    expect(await one.shouldStop()).toBe(true);
  });

  it('the first stop wins, not the first error', async () => {
    const { coord, one, other } = setUp(pair);
    await one.requestStop();
    await other.requestStop('RangeError');
    expect(coord.stopRecord).toMatchObject({ kind: 'plain', suppressedCount: 1 });
    expect(await one.join(0)).toBeUndefined();
  });

  it('the first error wins over a later one, and is thrown by join', async () => {
    const { coord, one, other } = setUp(pair);
    await one.requestStop('RangeError');
    await other.requestStop('OutOfRangeError');
    expect(coord.stopRecord).toMatchObject({ kind: 'error', error: { name: 'RangeError' } });
    expect(['RangeError', 'the recorded error']).toContain(await other.join(0));
    await expect(coord.join()).rejects.toThrow(RangeError);
  });

  it('OutOfRangeError is a clean stop by default', async () => {
    const { coord, one, other } = setUp(pair);
    await one.requestStop('OutOfRangeError');
    expect(await other.shouldStop()).toBe(true);
    expect(coord.stopRecord?.kind).toBe('clean');
    expect(await other.join(0)).toBeUndefined();
  });

  it('with an empty list nothing is clean', async () => {
    const { one, other } = setUp(pair, { cleanStopErrors: [] });
    await one.requestStop('OutOfRangeError');
    expect(['OutOfRangeError', 'the recorded error']).toContain(await other.join(0));
  });

  it('wait_for_stop: true if stopped, false on timeout, 0 polls', async () => {
    const { one, other } = setUp(pair);
    expect(await other.waitForStop(0)).toBe(false);
    expect(await other.waitForStop(5)).toBe(false);
    await one.requestStop();
    expect(await other.waitForStop(0)).toBe(true);
    expect(await other.waitForStop(10_000)).toBe(true);
  });

  it('after join an error is thrown back at its reporter, and the flag stays unset', async () => {
    const { coord, one, other } = setUp(pair);
    expect(await one.join(0)).toBeUndefined();
    expect(coord.joined).toBe(true);
    expect(['RangeError', 'refused']).toContain(await other.requestStop('RangeError'));
    expect(await one.shouldStop()).toBe(false);
    expect(coord.stopRecord).toBeUndefined();
  });

  it('after join a clean or plain stop sets the flag quietly', async () => {
    const { one, other } = setUp(pair);
    await one.join(0);
    expect(await other.requestStop('OutOfRangeError')).toBeUndefined();
    expect(await one.shouldStop()).toBe(true);
  });

  it('clear_stop resets flag, error and joined, and keeps the registry', async () => {
    const { coord, one, other } = setUp(pair);
    const thread = gated(coord);
    await one.requestStop('RangeError');
    await other.clearStop();
    expect(await one.shouldStop()).toBe(false);
    expect(coord.stopRecord).toBeUndefined();
    expect(coord.joined).toBe(false);
    expect(coord.threads.map(({ name }) => name)).toEqual([thread.name]);
    thread.release();
    expect(await one.join(0)).toBeUndefined();
  });

  it('join without threads and without a stop succeeds and stops nothing', async () => {
    const { coord, one, other } = setUp(pair);
    expect(await one.join(0)).toBeUndefined();
    expect(await other.shouldStop()).toBe(false);
    expect(coord.joined).toBe(true);
  });

  it('join throws for threads that outlive the grace period, and forgets them', async () => {
    const { coord, one, other } = setUp(pair);
    const thread = gated(coord);
    await one.requestStop();
    expect(await other.join(1)).toBe('StragglersError');
    expect(coord.threads).toEqual([]);
    thread.release();
  });

  it('the recorded error beats the stragglers', async () => {
    const { coord, one, other } = setUp(pair);
    const thread = gated(coord);
    await one.requestStop('RangeError');
    expect(['RangeError', 'the recorded error']).toContain(await other.join(1));
    thread.release();
  });

  it('joining again throws the same error again', async () => {
    const { one, other } = setUp(pair);
    await one.requestStop('RangeError');
    const first = await other.join(0);
    expect(first).toBeDefined();
    expect(await other.join(0)).toBe(first);
    expect(['RangeError', 'the recorded error']).toContain(await one.join(0));
  });

  it('threads that were never started count as finished', async () => {
    const { coord, one, other } = setUp(pair);
    addon.registerUnstarted(coord, 'unstarted');
    expect(coord.threads).toMatchObject([{ name: 'unstarted', alive: false }]);
    expect(await one.join(0)).toBeUndefined();
    expect(await other.shouldStop()).toBe(false);
  });
}
