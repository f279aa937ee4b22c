import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Coordinator, OutOfRangeError, SelfJoinError, StragglersError } from 'allstop';
import { describe, expect, it } from 'vitest';
import { gate, isPending, turn } from '../../support/gate.ts';

type Body = (coord: Coordinator) => unknown;
type End = (body: Body, stopGracePeriodMs?: number) => Promise<unknown>;

/** The two ways in which a scope ends. */
const ends: Record<string, End> = {
  run: (body, stopGracePeriodMs) => Coordinator.run(body, { stopGracePeriodMs }),
  disposal: async (body, stopGracePeriodMs) => {
    const coord = new Coordinator({ stopGracePeriodMs });
    body(coord);
    await coord[Symbol.asyncDispose]();
  },
};

describe.each(Object.entries(ends))('at the end of %s', (_, end) => {
  it('deferred functions run after the threads, the last first, one at a time', async () => {
    const said: string[] = [];
    const closing = gate();
    const ended = end((coord) => {
      coord.defer(() => said.push('closed the first'));
      coord.defer(async () => {
        said.push('closing the last');
        await closing.opened;
        said.push('closed the last');
      });
      void coord.start(async (same) => {
        await same.waitForStop();
        await turn().then(turn);
        said.push('wrote the last item');
      });
      coord.requestStop();
    });
    expect(await isPending(ended)).toBe(true);
    await turn().then(turn);
    expect(said).toEqual(['wrote the last item', 'closing the last']);
    closing.open();
    await ended;
    expect(said.slice(2)).toEqual(['closed the last', 'closed the first']);
  });

  it('they run though a thread was left behind', async () => {
    const said: string[] = [];
    let own: Coordinator | undefined;
    const ended = end((coord) => {
      own = coord;
      void coord.start(() => new Promise(() => {}), { name: 'stuck' });
      coord.defer(() => said.push('closed'));
      coord.defer(() => Promise.reject(new RangeError('in the deferred one')));
      coord.requestStop();
    }, 0);
    await expect(ended).rejects.toThrow(StragglersError);
    expect(said).toEqual(['closed']);
    expect(own?.stopRecord?.suppressedCount).toBe(1);
  });

  it('they run though an error is on its way, which theirs do not replace', async () => {
    let own: Coordinator | undefined;
    const said: string[] = [];
    const ended = end((coord) => {
      own = coord;
      coord.defer(() => said.push('closed'));
      coord.defer(() => Promise.reject(new RangeError('in the deferred one')), { name: 'log' });
      coord.requestStop(new TypeError('the cause'));
    });
    await expect(ended).rejects.toThrow('the cause');
    expect(said).toEqual(['closed']);
    expect(own?.stopRecord?.suppressed).toMatchObject([
      { error: { message: 'in the deferred one' }, requester: { via: 'defer', threadName: 'log' } },
    ]);
  });

  it('the first error of theirs is thrown if nothing else is, further ones are kept', async () => {
    let own: Coordinator | undefined;
    const first = new TypeError('first');
    const said: string[] = [];
    const ended = end((coord) => {
      own = coord;
      coord.defer(() => said.push('closed'));
      coord.defer(() => Promise.reject(new RangeError('second')));
      coord.defer(() => Promise.reject(first));
      coord.defer(() => Promise.reject(new OutOfRangeError('a clean one')));
    });
    await expect(ended).rejects.toBe(first);
    expect(said).toEqual(['closed']);
    const errors = own?.stopRecord?.suppressed.map(({ error, requester }) => [
      (error as Error).message,
      requester.via,
    ]);
    expect(errors).toEqual([
      ['a clean one', 'defer'],
      ['second', 'defer'],
    ]);
  });

  it('what the signal aborts in them is an echo of the stop', async () => {
    await end((coord) => coord.defer(() => coord.signal.throwIfAborted()));
  });

  it('one that is registered meanwhile runs next, one that was taken back does not run', async () => {
    const said: string[] = [];
    await end((coord) => {
      coord.defer(() => said.push('first'));
      coord.defer(() => said.push('taken back'))[Symbol.dispose]();
      coord.defer(() => coord.defer(() => said.push('meanwhile')));
    });
    expect(said).toEqual(['meanwhile', 'first']);
  });

  it('they run in the async context in which they were registered', async () => {
    const storage = new AsyncLocalStorage<string>();
    let seen: string | undefined;
    await end((coord) => {
      storage.run('of the registration', () => {
        coord.defer(() => {
          seen = storage.getStore();
        });
      });
    });
    expect(seen).toBe('of the registration');
  });

  it('one that runs is a thread with its name, which a join in it would wait for', async () => {
    let seen: unknown;
    const ended = end((coord) => {
      coord.defer(
        async () => {
          seen = coord.threads;
          await coord.join();
        },
        { name: 'close db' },
      );
    });
    await expect(ended).rejects.toMatchObject({ code: 'ERR_ALLSTOP_SELF_JOIN' });
    expect(seen).toMatchObject([{ name: 'close db', alive: true }]);
  });
});

it('a coordinator that is only joined calls no deferred function', async () => {
  const coord = new Coordinator();
  let calls = 0;
  coord.defer(() => calls++);
  coord.requestStop();
  await coord.join();
  expect(calls).toBe(0);
  await coord[Symbol.asyncDispose]();
  await coord[Symbol.asyncDispose]();
  expect(calls).toBe(1);
});

it('a thread that disposes of its coordinator changes nothing', async () => {
  const coord = new Coordinator();
  const { handle } = coord;
  const calls: string[] = [];
  coord.defer(() => calls.push('deferred'));
  coord.onStop(() => calls.push('hook'));
  coord.stopAfter(3_600_000);
  const { links } = coord.explain();
  let refusal: unknown;
  await coord.start(async (same) => {
    refusal = await same[Symbol.asyncDispose]().catch((error) => error);
  });
  expect(refusal).toBeInstanceOf(SelfJoinError);
  expect([coord.shouldStop(), coord.explain().links]).toEqual([false, links]);
  const attach = `require('allstop').Coordinator.attach(require('node:worker_threads').workerData)`;
  expect(await once(new Worker(attach, { eval: true, workerData: handle }), 'exit')).toEqual([0]);
  await coord[Symbol.asyncDispose]();
  expect(calls).toEqual(['hook', 'deferred']);
});

it('of two disposals at once the second waits for what the first has called', async () => {
  const coord = new Coordinator();
  const said: string[] = [];
  const flushing = gate();
  coord.defer(() => said.push('closed'));
  coord.defer(async () => {
    await flushing.opened;
    said.push('flushed');
  });
  const disposals = [coord, coord].map((each) => each[Symbol.asyncDispose]());
  expect(await isPending(Promise.race(disposals))).toBe(true);
  flushing.open();
  await Promise.all(disposals);
  expect(said).toEqual(['flushed', 'closed']);
});

it('a function that is registered after the others were called is called at once', async () => {
  let coord: Coordinator | undefined;
  await Coordinator.run((own) => {
    coord = own;
    own.defer(() => {});
  });
  await new Promise<void>((resolve) => void coord?.defer(resolve));
});

it('defer() refuses what it cannot call, and unknown options', () => {
  const coord = new Coordinator();
  expect(() => coord.defer('close' as never)).toThrow(TypeError);
  expect(() => coord.defer(() => {}, { nmae: 'x' } as never)).toThrow(/name/);
});
