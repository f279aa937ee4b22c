/** RemoteValues as arguments: a function waits for the results of others, outside the line. */

import {
  CancelledError,
  ClusterCoordinator,
  InvalidArgumentError,
  LocalStrategy,
  type RemoteValue,
  transfer,
} from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import * as tasks from '../../fixtures/cluster-tasks.mjs';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';
import { isPending, turn } from '../../support/gate.ts';

const MODULE = new URL('../../fixtures/cluster-tasks.mjs', import.meta.url);

describeKinds(kinds, (kind) => {
  const { start, running, visits } = useClusters(kind);

  describe('a RemoteValue as an argument', () => {
    it('is there for the function, by run, schedule and map', async () => {
      const cluster = start(2);
      const three = await cluster.schedule(tasks.add, [1, 2]);
      const four = await cluster.schedule('add', [three, 1]);
      expect(await cluster.run('add', [three, four])).toBe(7);
      expect(await three.fetch()).toBe(3);
      const results: number[] = [];
      for await (const result of cluster.map('double', [three, 10, four])) results.push(result);
      expect(results).toEqual([6, 20, 8]);
      let last = three;
      for (let link = 0; link < 100; link += 1) last = await cluster.schedule('add', [last, 1]);
      expect(await last.fetch()).toBe(103);
    });

    it('is a copy for each function', async () => {
      const cluster = start(1);
      const list = await cluster.schedule('echo', [[1, 2]]);
      const other = await cluster.schedule('echo', [list]);
      expect(await other.fetch()).toEqual([1, 2]);
      expect(await other.fetch()).not.toBe(await list.fetch());
    });

    it('is waited for outside the line, which others pass', async () => {
      const cluster = start(2, { maxQueued: 1 });
      const { value, visit } = await running(cluster, 'a');
      const waiting = await cluster.schedule('echo', [value]);
      expect(waiting.state).toBe('pending');
      expect(cluster.stats()).toMatchObject({ queued: 0, held: 1, inFlight: 1 });
      expect(await cluster.done()).toBe(false);
      expect(await cluster.run('add', [1, 2])).toBe(3);
      const joined = cluster.join();
      expect(await isPending(joined)).toBe(true);
      visit.pass('fine');
      await joined; // also for what waited
      expect(waiting.state).toBe('ready');
      expect(await waiting.fetch()).toBe('fine');
    });

    it('may be at the end of a long chain, which ends as its first one does', async () => {
      const cluster = start(1);
      const chain = async (): Promise<RemoteValue<unknown>[]> => {
        const { value } = await running(cluster, 'a');
        const links: RemoteValue<unknown>[] = [value];
        for (let link = 0; link < 2_000; link += 1) {
          links.push(await cluster.schedule('echo', [links.at(-1)]));
        }
        return links;
      };
      const states = (links: RemoteValue<unknown>[]): string[] => [
        ...new Set(links.map(({ state }) => state)),
      ];
      const cancelled = await chain();
      cancelled[0]?.cancel('enough');
      expect(states(cancelled)).toEqual(['cancelled']);
      expect(await errorOf(cancelled[2_000]?.fetch() as Promise<unknown>)).toBe('enough');
      await visits.close(); // ends the function that was cancelled
      await cluster.join();
      await visits.open();
      const [first, ...dropped] = await chain();
      const ended = errorOf((first as RemoteValue<unknown>).fetch());
      const closing = cluster.close();
      expect(states(dropped)).toEqual(['cancelled']);
      await visits.close();
      await Promise.all([ended, closing]);
    });

    it('that fails fails the function with its error, which is thrown once', async () => {
      const cluster = start(2);
      const { value: a, visit } = await running(cluster, 'a');
      const b = await cluster.schedule('add', [a as any, 1]);
      const own = errorOf(cluster.run('add', [1, a as any]));
      const other = await cluster.schedule('echo', [b]);
      visit.fail('broken');
      const error = await errorOf(a.fetch());
      expect(await errorOf(b.fetch())).toBe(error);
      expect(await own).toBe(error);
      expect(await errorOf(other.fetch())).toBe(error);
      expect([b.state, other.state]).toEqual(['failed', 'failed']);
      expect(await errorOf(cluster.join())).toBe(error);
      const late = await cluster.schedule('echo', [a]);
      expect(await errorOf(late.fetch())).toBe(error);
      await cluster.join();
    });

    it('that is cancelled cancels the function, and nothing else', async () => {
      const cluster = start(2);
      const { value: a, visit } = await running(cluster, 'a');
      const b = await cluster.schedule('echo', [a]);
      a.cancel('not wanted');
      expect(await errorOf(b.fetch())).toBe('not wanted');
      expect(b.state).toBe('cancelled');
      visit.pass();
      await cluster.join();
    });

    it('is not waited for any more after a failure, a deadline, a signal or cancel', async () => {
      const cluster = start(2);
      const { value: a, visit } = await running(cluster, 'a');
      // A slow machine may need the millisecond to put it in the queue: then `schedule` says so.
      const late = cluster.schedule('echo', [a], { timeoutMs: 1 }).then((value) => value.fetch());
      expect(await errorOf(late)).toMatchObject({ name: 'DeadlineExceededError' });
      const cancelled = await cluster.schedule('echo', [a]);
      cancelled.cancel('enough');
      expect(await errorOf(cancelled.fetch())).toBe('enough');
      const dropped = await cluster.schedule('echo', [a]);
      const own = cluster.run('echo', [a]);
      const failing = await cluster.schedule('fail', ['broken']);
      await errorOf(failing.fetch());
      expect(await errorOf(dropped.fetch())).toBeInstanceOf(CancelledError);
      visit.pass('fine');
      expect(await own).toBe('fine');
      await expect(cluster.join()).rejects.toThrow('broken');
      await cluster.join();
    });

    it('is not waited for by a cluster that is closed', async () => {
      const cluster = start(1);
      const { value, visit } = await running(cluster, 'a');
      const waiting = await cluster.schedule('echo', [value]);
      const closing = cluster.close();
      expect(await errorOf(waiting.fetch())).toBeInstanceOf(CancelledError);
      visit.pass();
      await closing;
    });

    it('may be another cluster’s', async () => {
      const [one, other] = [start(1), start(1)];
      const three = await one.schedule('add', [1, 2]);
      expect(await other.run('add', [three, 1])).toBe(4);
    });

    it('leaves the other arguments what they were at the call', async () => {
      const cluster = start(2);
      const { value, visit } = await running(cluster, 'a');
      const list = [1];
      const waiting = await cluster.schedule('both', [value, list]);
      list.push(2);
      const given: [any, any] = [value, 'first'];
      const other = await cluster.schedule('both', given);
      given.fill(0);
      const bytes = new Uint8Array([1, 2, 3]);
      const moved = await cluster.schedule('both', [value, transfer(bytes, [bytes.buffer])]);
      expect(bytes.byteLength).toBe(0);
      const data = cluster.createPerWorkerDataset('own').iterator();
      // By `run`: the error of a scheduled function would cancel those that still run elsewhere.
      const own = errorOf(cluster.run('both', [value, data]));
      visit.pass('fine');
      expect(await waiting.fetch()).toEqual(['fine', [1]]);
      expect(await other.fetch()).toEqual(['fine', 'first']);
      expect(await moved.fetch()).toEqual(['fine', new Uint8Array([1, 2, 3])]);
      expect(await own).toMatchObject({ name: 'DataCloneError' }); // it got one
    });

    it('counts the bytes of the others while the function is in line', async () => {
      const cluster = start(1);
      const three = await cluster.schedule('add', [1, 2]);
      await three.fetch();
      const { visit } = await running(cluster, 'a');
      const large = 'x'.repeat(100_000);
      const values = [
        await cluster.schedule('both', [three, large]),
        await cluster.schedule('both', [three, large]),
      ];
      await turn();
      expect(cluster.stats()).toMatchObject({ queued: 2, held: 0 });
      expect(cluster.stats().queuedBytes).toBeGreaterThanOrEqual(200_000);
      visit.pass();
      await cluster.fetch(values);
      expect(cluster.stats().queuedBytes).toBe(0);
    });

    it('is refused inside another value, and so is what cannot be copied beside it', async () => {
      const cluster = start(1);
      await cluster.ready(); // else a slow start lets calls in with names that nobody has checked
      const value = await cluster.schedule('add', [1, 2]);
      const inside = cluster.schedule('echo', [{ value }]);
      await expect(inside).rejects.toThrow(InvalidArgumentError);
      await expect(inside).rejects.toThrow('fetch() it first');
      const odd = cluster.schedule('both', [value, () => {}]);
      await expect(odd).rejects.toThrow(/Argument 1 of 'both' cannot be cloned/);
      await expect(cluster.schedule('nobody', [value])).rejects.toThrow(TypeError);
    });
  });
});

// If each that leaves looked at all the others, `close` alone would take minutes.
const MANY = { tags: 'long', timeout: 60_000 };

it('any number of functions may wait for one value, and leave it', MANY, async () => {
  const cluster = new ClusterCoordinator(new LocalStrategy({ module: MODULE, workers: 1 }));
  const value = await cluster.schedule('reportUntilAborted');
  const held: RemoteValue<unknown>[] = [];
  for (let each = 0; each < 100_000; each += 1) held.push(await cluster.schedule('echo', [value]));
  await cluster.close();
  expect(new Set(held.map(({ state }) => state))).toEqual(new Set(['cancelled']));
});
