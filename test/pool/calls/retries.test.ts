/** A call says how long its function may run, and after which errors it is run again. */

import { once } from 'node:events';
import {
  type ClusterCoordinator,
  DeadlineExceededError,
  InvalidArgumentError,
  type Retry,
  UnavailableError,
} from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';

const again = (): boolean => true;

function retriesOf(cluster: ClusterCoordinator): Retry[] {
  const retries: Retry[] = [];
  cluster.on('retry', (retry) => retries.push(retry));
  return retries;
}

describeKinds(kinds, (kind) => {
  const { start, running, visits } = useClusters(kind);

  describe('runTimeoutMs', () => {
    it('does not count the time in line, and asks the function to end', async () => {
      const cluster = start();
      const { visit } = await running(cluster, 'first');
      const args = [visits.path, 'second'];
      const late = errorOf(cluster.run('untilAborted', args, { runTimeoutMs: 1 }));
      const other = errorOf(cluster.run('add', [1, 2], { timeoutMs: 50 }));
      expect(await other).toBeInstanceOf(DeadlineExceededError);
      visit.pass();
      const told = await (await visits.next('second')).told();
      const why = "The function 'untilAborted' ran for more than 1 ms (options.runTimeoutMs)";
      expect(told).toBe(`DeadlineExceededError: ${why}`);
      expect(await late).toMatchObject({ name: 'DeadlineExceededError', message: why });
      await cluster.join();
      expect(cluster.workers[0]?.restarts).toBe(0);
    });

    it('ends a function that hears nothing, and nothing that keeps to it', async () => {
      const cluster = start(1, { cancelGraceMs: 1 });
      const late = await errorOf(cluster.run('spin', [], { runTimeoutMs: 1, retryOn: again }));
      expect(late).toBeInstanceOf(DeadlineExceededError);
      const sums = [1, 2, 3].map((n) => cluster.run('add', [n, n], { runTimeoutMs: 60_000 }));
      expect(await Promise.all(sums)).toEqual([2, 4, 6]);
      await expect(cluster.run('add', [1, 2], { runTimeoutMs: 0 })).rejects.toThrow('0 ms');
    });
  });

  describe('retryOn', () => {
    it('runs the function again after the errors that it names, `retries` times', async () => {
      const cluster = start();
      const retries = retriesOf(cluster);
      const asked: unknown[] = [];
      const retryOn = (error: Error, attempt: number): boolean => {
        asked.push([error.message, attempt]);
        return !error.message.includes('final');
      };
      expect(await cluster.run('failUntil', [3], { retryOn })).toBe(3);
      const name = 'failUntil';
      expect(retries).toEqual([
        { name, attempt: 2, cause: expect.objectContaining({ message: 'not yet 1' }) },
        { name, attempt: 3, cause: expect.objectContaining({ message: 'not yet 2' }) },
      ]);
      const final = cluster.run('failUntil', [3, 'final'], { retryOn });
      await expect(final).rejects.toThrow('final 1');
      const often = cluster.run('failUntil', [9], { retryOn, retries: 1 });
      await expect(often).rejects.toThrow('not yet 2');
      expect(asked.slice(2)).toEqual([
        ['final 1', 1],
        ['not yet 1', 1],
      ]);
      const { failUntil } = cluster.stats().functions;
      expect(failUntil).toMatchObject({ completed: 1, failed: 2, retried: 3 });
    });

    it('may be classes, names and codes', async () => {
      const cluster = start();
      for (const retryOn of [[RangeError], ['RangeError'], ['E_TEST'], new Set([Error])]) {
        expect(await cluster.run('failUntil', [2], { retryOn })).toBe(2);
      }
      const other = cluster.run('failUntil', [2], { retryOn: [TypeError, 'E_OTHER'] });
      await expect(other).rejects.toThrow('not yet 1');
    });

    it('is told to nobody while it goes on; its last error is as any other', async () => {
      const cluster = start();
      const fine = await cluster.schedule('failUntil', [2], { retryOn: again });
      await cluster.join();
      expect(await fine.fetch()).toBe(2);
      await cluster.schedule('failUntil', [9], { retryOn: again, retries: 1 });
      await expect(cluster.join()).rejects.toThrow('not yet 2');
    });

    it('is not asked about deadlines, cancellations and deaths', async () => {
      const cluster = start(1, { cancelGraceMs: 1_000 });
      const asked: unknown[] = [];
      const retryOn = (error: unknown): boolean => asked.push(error) > 0;
      const run = (options = {}): Promise<any> =>
        errorOf(cluster.run('untilAborted', [visits.path, 'a'], { retryOn, ...options }));
      const late = run({ runTimeoutMs: 1 });
      await visits.next('a');
      expect(await late).toBeInstanceOf(DeadlineExceededError);
      const abort = new AbortController();
      const cancelled = run({ signal: abort.signal });
      await visits.next('a');
      abort.abort('enough');
      expect(await cancelled).toBe('enough');
      const dead = await errorOf(cluster.run('dieUntil', [9], { retries: 1, retryOn }));
      expect(dead).toBeInstanceOf(UnavailableError);
      const closed = run();
      await visits.next('a');
      await cluster.close();
      expect((await closed).name).toBe('CancelledError');
      expect(asked).toEqual([]);
    });

    it('that throws, or gives nonsense, is the error of the call', async () => {
      const cluster = start();
      const mine = new Error('mine');
      const throwing = (): never => {
        throw mine;
      };
      expect(await errorOf(cluster.run('fail', ['x'], { retryOn: throwing }))).toBe(mine);
      const options = { retryOn: again, retryDelayMs: throwing };
      expect(await errorOf(cluster.run('fail', ['x'], options))).toBe(mine);
      const promise = (async () => true) as unknown as () => boolean;
      await expect(cluster.run('fail', ['x'], { retryOn: promise })).rejects.toThrow(
        /options.retryOn\(error, attempt\).* boolean. Received an instance of Promise/,
      );
      const inNoList = { retryOn: RangeError as never };
      await expect(cluster.run('fail', ['x'], inNoList)).rejects.toThrow(
        /options.retryOn.* must be an array, .*: write \[RangeError\]/,
      );
      for (const delay of [Number.NaN, -1, Number.POSITIVE_INFINITY]) {
        const call = cluster.run('fail', ['x'], { retryOn: again, retryDelayMs: () => delay });
        await expect(call).rejects.toThrow('"options.retryDelayMs(attempt)" is out of range');
      }
    });

    it('may cancel the call, which is not run again then, whatever it gives', async () => {
      const cluster = start();
      const throwing = (): never => {
        throw new Error('of a call that is cancelled');
      };
      for (const answer of [again, throwing]) {
        const abort = new AbortController();
        const retryOn = (): boolean => {
          abort.abort('enough');
          return answer();
        };
        const options = { retryOn, signal: abort.signal };
        const value = await cluster.schedule('fail', ['x'], options);
        expect(await errorOf(value.fetch())).toBe('enough');
        await cluster.join();
      }
      expect(cluster.stats()).toMatchObject({ queued: 0, inFlight: 0, cancelled: 2, retried: 0 });
    });

    it('is refused if it is only the delay, which would be ignored', async () => {
      for (const retryDelayMs of [0, 10, () => 10]) {
        const call = start().run('add', [1, 2], { retryDelayMs });
        await expect(call).rejects.toThrow(InvalidArgumentError);
      }
      expect(await start().run('add', [1, 2], { retryDelayMs: undefined })).toBe(3);
      const none = { retryOn: again, retryDelayMs: null as unknown as number };
      await expect(start().run('add', [1, 2], none)).rejects.toThrow(TypeError);
    });
  });

  describe('in its delay a call', () => {
    it('is in line and holds no worker', async () => {
      const cluster = start();
      const delays: number[] = [];
      const retryDelayMs = (attempt: number): number => {
        delays.push(attempt);
        return 20;
      };
      const call = cluster.run('failUntil', [3], { retryOn: again, retryDelayMs });
      await once(cluster, 'retry');
      expect(cluster.stats()).toMatchObject({ queued: 1, held: 0, inFlight: 0 });
      expect(await cluster.run('add', [1, 2])).toBe(3);
      await cluster.close({ drainMs: 60_000 });
      expect(await call).toBe(3);
      expect(delays).toEqual([1, 2]);
    });

    it('can be cancelled, by its deadline, its signal, another’s error and close', async () => {
      const cluster = start();
      await cluster.ready();
      const options = { retryOn: again, retryDelayMs: 2 ** 40 };
      const abort = new AbortController();
      const { signal } = abort;
      const late = errorOf(cluster.run('failUntil', [2], { ...options, timeoutMs: 1_000 }));
      const aborted = errorOf(cluster.run('failUntil', [2], { ...options, signal }));
      const closed = errorOf(cluster.run('failUntil', [2], options));
      const scheduled = await cluster.schedule('failUntil', [2], options);
      while (cluster.stats().retried < 4) await once(cluster, 'retry');
      abort.abort('enough');
      expect(await aborted).toBe('enough');
      expect(await late).toBeInstanceOf(DeadlineExceededError);
      await cluster.schedule('fail', ['x']);
      await expect(cluster.join()).rejects.toThrow('x');
      expect(scheduled.state).toBe('cancelled');
      expect(cluster.stats()).toMatchObject({ queued: 1, held: 0, inFlight: 0 });
      await cluster.close();
      expect((await closed).message).toBe('The cluster was closed');
    });
  });

  describe('an error of the pool itself', () => {
    it('has the frames of the functions that await the call', async () => {
      const cluster = start(1, { cancelGraceMs: 1 });
      async function callTheWorker(name: string, options: object): Promise<unknown> {
        return await cluster.run(name, [], options);
      }
      const stackOf = async (name: string, options: object): Promise<string> =>
        (await errorOf(callTheWorker(name, options))).stack;
      const expected = /^[^\n]*\n(?: {4}at [^\n]*\n)*? {4}at (?:async )?callTheWorker \(/;
      expect(await stackOf('add', { timeoutMs: 1 })).toMatch(expected); // no worker is ready
      async function scheduleTooLate(): Promise<unknown> {
        return await cluster.schedule('add', [], { timeoutMs: 1 });
      }
      expect((await errorOf(scheduleTooLate())).stack).toMatch(/at (?:async )?scheduleTooLate \(/);
      expect(await stackOf('spin', { runTimeoutMs: 1 })).toMatch(expected);
      expect(await stackOf('spin', { timeoutMs: 10 })).toMatch(expected);
      expect(await stackOf('add', { timeoutMs: 0 })).toMatch(expected);
      await cluster.ready();
      expect(await stackOf('exit', { retries: 0 })).toMatch(expected);
      async function fetchLater(): Promise<unknown> {
        const value = await cluster.schedule('spin', [], { runTimeoutMs: 1 });
        return await value.fetch();
      }
      expect((await errorOf(fetchLater())).stack).toMatch(/at (?:async )?fetchLater \(/);
    });
  });
});
