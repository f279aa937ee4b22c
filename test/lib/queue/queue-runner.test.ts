// QueueRunner: it keeps a queue filled, and however its threads end, no thread is left waiting at
// the queue.

import {
  BoundedQueue,
  CancelledError,
  Coordinator,
  DeadlineExceededError,
  FailedPreconditionError,
  InvalidArgumentError,
  OutOfRangeError,
  QueueRunner,
  SelfJoinError,
} from 'allstop';
import { describe, expect, it } from 'vitest';
import { gate, isPending, turn } from '../../support/gate.ts';

const wrong = (value: unknown): never => value as never;

/** A module with this source, for use as an op. */
const source = (text: string): URL => new URL(`data:text/javascript,${encodeURIComponent(text)}`);

/** An op that enqueues the numbers from 0 to below `count`, then throws OutOfRangeError. */
function counting(count: number): (queue: BoundedQueue<number>) => Promise<void> {
  let next = 0;
  return async function count_up(queue) {
    if (next === count) throw new OutOfRangeError('that was all');
    await queue.enqueue(next++);
  };
}

async function drained<T>(queue: BoundedQueue<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of queue) items.push(item);
  return items;
}

describe('an op', () => {
  it('is called again and again, with the queue and the coordinator, until its end', async () => {
    const coord = new Coordinator();
    const queue = new BoundedQueue<number>({ capacity: 2, coordinator: coord });
    const calls: unknown[][] = [];
    const count = counting(5);
    const runner = new QueueRunner(queue, [
      (...args) => {
        calls.push(args);
        return count(args[0]);
      },
    ]);
    const threads = runner.createThreads({ coordinator: coord, start: true });
    expect(await drained(queue)).toEqual([0, 1, 2, 3, 4]);
    await coord.join(threads);
    expect(coord.shouldStop()).toBe(false);
    expect(calls.map(([given, with_]) => given === queue && with_ === coord)).toEqual(
      Array(6).fill(true),
    );
  });

  it('may be synchronous, and lets the event loop turn between two calls', async () => {
    const queue = new BoundedQueue<number>({ capacity: 100 });
    let turns = 0;
    let called = 0;
    const runner = new QueueRunner(queue, [
      () => {
        if (++called === 10) throw new OutOfRangeError('enough');
        setImmediate(() => ++turns);
      },
    ]);
    const [thread] = runner.createThreads({ start: true });
    await thread?.join();
    expect(turns).toBe(9);
  });

  it.each([
    ['an Error', new RangeError('it broke')],
    ['undefined', undefined],
  ])('that fails with %s stops the coordinator, and the queue is closed', async (_, error) => {
    const coord = new Coordinator();
    const queue = new BoundedQueue({ capacity: 2, name: 'frames' });
    const runner = new QueueRunner(queue, [
      async function load() {
        await turn();
        throw error;
      },
    ]);
    const threads = runner.createThreads({ coordinator: coord, start: true });
    await expect(coord.join(threads)).rejects.toBe(error);
    expect(coord.stopRecord?.requester).toMatchObject({
      via: 'exception',
      threadName: 'QueueRunnerThread-frames-load',
    });
    expect(queue.closed).toBe(true);
    expect(runner.exceptionsRaised).toEqual([]);
  });

  it('that fails without a coordinator leaves its error, and the others go on', async () => {
    const queue = new BoundedQueue<number>({ capacity: 2 });
    const error = new TypeError('mine');
    const runner = new QueueRunner(queue, [
      () => {
        throw error;
      },
      counting(3),
    ]);
    const threads = runner.createThreads({ start: true });
    expect(await drained(queue)).toEqual([0, 1, 2]);
    await Promise.all(threads.map((thread) => thread.join()));
    expect(runner.exceptionsRaised).toEqual([error]);
    expect(runner.exceptionsRaised[0]).toBe(error);
  });

  it('keeps its error, although that has a name which throws', async () => {
    const error = Object.assign(new RangeError('mine'), { name: Object.create(null) });
    const runner = new QueueRunner(new BoundedQueue({ capacity: 1 }), [
      () => {
        throw error;
      },
    ]);
    const [thread] = runner.createThreads({ start: true });
    await thread?.join();
    expect(runner.exceptionsRaised).toEqual([error]);
    expect(runner.exceptionsRaised[0]).toBe(error);
  });

  it.each([
    ['a class', RangeError],
    ['a name', 'RangeError'],
    ['a base class', Error],
    ['a code', 'ERR_NO_MORE'],
  ])('ends quietly with an error of the queueClosedErrors, given by %s', async (_, type) => {
    const queue = new BoundedQueue({ capacity: 1 });
    const runner = new QueueRunner(
      queue,
      [
        () => {
          throw Object.assign(new RangeError('done'), { code: 'ERR_NO_MORE' });
        },
      ],
      { queueClosedErrors: [type] },
    );
    await runner.createThreads({ start: true })[0]?.join();
    expect(runner.exceptionsRaised).toEqual([]);
    expect(queue.closed).toBe(true);
  });

  it('ends with an OutOfRangeError only by default', async () => {
    const queue = new BoundedQueue({ capacity: 1 });
    const error = new OutOfRangeError('no end here');
    const ops = [
      () => {
        throw error;
      },
    ];
    const runner = new QueueRunner(queue, ops, { queueClosedErrors: [] });
    await runner.createThreads({ start: true })[0]?.join();
    expect(runner.exceptionsRaised).toEqual([error]);
  });
});

it('an op is not called before createThreads has returned', async () => {
  const queue = new BoundedQueue({ capacity: 1 });
  let returned = false;
  const runner = new QueueRunner(queue, [
    () => {
      throw returned ? new OutOfRangeError('done') : new RangeError('too early');
    },
  ]);
  const [thread] = runner.createThreads({ start: true });
  returned = true;
  await thread?.join();
  expect(runner.exceptionsRaised).toEqual([]);
});

describe('a module as an op', () => {
  it('is called in a worker, with the queue and the coordinator of there', async () => {
    const coord = new Coordinator({ name: 'shared' });
    const queue = new BoundedQueue<unknown[]>({ capacity: 1, coordinator: coord });
    const op = source(`
      import { threadId } from 'node:worker_threads';
      let next = 0;
      export default async (queue, coord) => {
        if (next === 3) throw Object.assign(new Error('no more'), { name: 'OutOfRangeError' });
        await queue.enqueue([next++, coord.name, threadId > 0]);
      };`);
    const threads = new QueueRunner(queue, [op]).createThreads({ coordinator: coord, start: true });
    expect(await drained(queue)).toEqual([0, 1, 2].map((next) => [next, 'shared', true]));
    await coord.join(threads);
    expect(coord.shouldStop()).toBe(false);
  });

  it('that fails stops the coordinator with its error', async () => {
    const coord = new Coordinator();
    const queue = new BoundedQueue({ capacity: 1 });
    const op = source(`export default () => {
      throw Object.assign(new RangeError('in there'), { fields: new Map([[1, 2n]]) });
    };`);
    new QueueRunner(queue, [op]).createThreads({ coordinator: coord, start: true });
    await expect(coord.join()).rejects.toMatchObject({
      name: 'RangeError',
      message: 'in there',
      fields: new Map([[1, 2n]]),
    });
    expect(queue.closed).toBe(true);
  });

  it.each([
    ['fails', `export default (queue, coord) => { throw new RangeError(typeof coord); }`],
    ['cannot be loaded', `throw new RangeError('undefined');`],
  ])('that %s without a coordinator leaves its error', async (_, text) => {
    const queue = new BoundedQueue({ capacity: 1 });
    const runner = new QueueRunner(queue, [source(text)]);
    await runner.createThreads({ start: true })[0]?.join();
    expect(runner.exceptionsRaised).toEqual([new RangeError('undefined')]);
    expect(queue.closed).toBe(true);
  });

  it('that ends its process, or has no function, is an error', async () => {
    const queue = new BoundedQueue({ capacity: 1 });
    const runner = new QueueRunner(queue, [
      source('export default () => process.exit(3)'),
      source('export default 5'),
    ]);
    await Promise.all(runner.createThreads({ start: true }).map((thread) => thread.join()));
    const errors = runner.exceptionsRaised as (Error & { code: string; exitCode?: number })[];
    const notFunction = errors.find(({ name }) => name === 'TypeError');
    expect(notFunction).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
    expect(notFunction?.message).toMatch(
      /^The module of the op 'op-2' of the QueueRunner '.+' has no function as its default export/,
    );
    expect(new Set(errors.map(({ name, exitCode }) => `${name} ${exitCode}`))).toEqual(
      new Set(['TypeError undefined', 'UnavailableError 3']),
    );
  });

  it('ends when its function has, whatever its module has left open', async () => {
    const coord = new Coordinator();
    const queue = new BoundedQueue<number>({ capacity: 1 });
    const op = source(
      `setInterval(() => {}, 1_000);
      let next = 0;
      export default async (queue) => {
        if (next === 2) throw Object.assign(new Error(), { name: 'OutOfRangeError' });
        await queue.enqueue(next++);
      };`,
    );
    new QueueRunner(queue, [op]).createThreads({ coordinator: coord, start: true });
    expect(await drained(queue)).toEqual([0, 1]);
    await coord.join();
    expect(coord.shouldStop()).toBe(false);
  });

  it('that leaves a rejection to nobody has thrown it', async () => {
    const coord = new Coordinator();
    const op = source(
      `export default () => {
        void Promise.reject(new RangeError('left'));
        throw Object.assign(new Error(), { name: 'OutOfRangeError' });
      };`,
    );
    const queue = new BoundedQueue({ capacity: 1 });
    new QueueRunner(queue, [op]).createThreads({ coordinator: coord, start: true });
    await expect(coord.join()).rejects.toThrow(new RangeError('left'));
  });

  it('that is blocked on a full queue is released by a stop', async () => {
    const coord = new Coordinator();
    // Has no coordinator of its own, so cancelOp must release the op.
    const queue = new BoundedQueue({ capacity: 1 });
    const op = source('export default (queue) => queue.enqueueSync(1);');
    const threads = new QueueRunner(queue, [op, op]).createThreads({
      coordinator: coord,
      start: true,
    });
    await queue.dequeue();
    coord.requestStop();
    await coord.join(threads);
    expect(coord.stopRecord?.suppressed).toEqual([]);
  });
});

describe('the threads', () => {
  it('are named after the queue and the op, and listed by the coordinator', () => {
    const coord = new Coordinator();
    const queue = new BoundedQueue({ capacity: 1, name: 'q' });
    function fill(): void {}
    const ops = [fill, () => {}, new URL('file:///ops/read.file.mjs')];
    const threads = new QueueRunner(queue, ops).createThreads({ coordinator: coord });
    const names = [
      'QueueRunnerThread-q-fill',
      'QueueRunnerThread-q-op-2',
      'QueueRunnerThread-q-read.file',
      'QueueRunnerThread-q-close_on_stop',
    ];
    expect(threads.map(({ name }) => name)).toEqual(names);
    expect(coord.threads.map(({ name, kind, alive }) => [name, kind, alive])).toEqual(
      names.map((name, i) => [name, i === 2 ? 'worker' : 'task', false]),
    );
    const named = new QueueRunner(queue, [fill], { name: 'runner' });
    expect(named.createThreads().map(({ name }) => name)).toEqual([
      'QueueRunnerThread-runner-fill',
    ]);
    expect([named.name, new QueueRunner(queue, [fill]).name]).toEqual(['runner', 'q']);
  });

  it('hold up no join until they are started', async () => {
    const coord = new Coordinator();
    const queue = new BoundedQueue({ capacity: 1, coordinator: coord });
    const threads = new QueueRunner(queue, [(q) => q.enqueue(1)]).createThreads({
      coordinator: coord,
    });
    await coord.join(threads);
    coord.clearStop();
    for (const thread of threads) {
      expect(thread.alive).toBe(false);
      await thread.join();
      expect(thread.start()).toBe(thread);
      expect(thread.alive).toBe(true);
    }
    const joined = coord.join();
    expect(await isPending(joined)).toBe(true);
    coord.requestStop();
    await joined;
    await Promise.all(threads.map((thread) => thread.join()));
    expect(threads.map(({ alive }) => alive)).toEqual([false, false]);
  });

  it('cannot be started twice', async () => {
    const queue = new BoundedQueue<number>({ capacity: 9 });
    const [thread] = new QueueRunner(queue, [counting(1)]).createThreads({ start: true });
    expect(() => thread?.start()).toThrow(FailedPreconditionError);
    await thread?.join();
    expect(() => thread?.start()).toThrow(FailedPreconditionError);
  });

  it('cannot join themselves', async () => {
    const coord = new Coordinator();
    const queue = new BoundedQueue({ capacity: 1 });
    const caught: unknown[] = [];
    const [thread] = new QueueRunner(queue, [
      async () => {
        await thread?.join().catch((error: unknown) => caught.push(error));
        await coord.join().catch((error: unknown) => caught.push(error));
        throw new OutOfRangeError('done');
      },
    ]).createThreads({ coordinator: coord });
    await thread?.start().join();
    expect(caught).toEqual([expect.any(SelfJoinError), expect.any(SelfJoinError)]);
  });

  it('are none as long as those of an earlier call have not all ended', async () => {
    const queue = new BoundedQueue<number>({ capacity: 1 });
    const runner = new QueueRunner(queue, [counting(1), counting(1)]);
    const threads = runner.createThreads();
    // As in TensorFlow, threads that were never started count, too.
    expect(runner.createThreads()).toEqual([]);
    await threads[0]?.start().join();
    expect(runner.createThreads({ start: true })).toEqual([]);
    await queue.dequeue();
    await threads[1]?.start().join();
    expect(runner.createThreads()).toHaveLength(2);
  });

  it('are not made again until the closeOp of the earlier ones has ended', async () => {
    const closing = gate();
    const goOn = gate();
    const closeOp = async (): Promise<void> => {
      closing.open();
      await goOn.opened;
    };
    const runner = new QueueRunner(new BoundedQueue({ capacity: 1 }), [counting(0)], { closeOp });
    const [thread] = runner.createThreads({ start: true });
    await closing.opened;
    expect(thread?.alive).toBe(true);
    expect(runner.createThreads()).toEqual([]);
    goOn.open();
    await thread?.join();
    expect(runner.createThreads()).toHaveLength(1);
  });

  it('begin with no exceptions raised', async () => {
    const queue = new BoundedQueue({ capacity: 1 });
    const runner = new QueueRunner(queue, [
      () => {
        throw new RangeError('again');
      },
    ]);
    for (let round = 0; round < 2; round++) {
      const [thread] = runner.createThreads();
      expect(runner.exceptionsRaised).toEqual([]);
      await thread?.start().join();
      expect(runner.exceptionsRaised).toEqual([new RangeError('again')]);
    }
  });
});

describe('the queue', () => {
  it('is closed when the last op has ended, not before', async () => {
    const queue = new BoundedQueue<number>({ capacity: 9 });
    const goOn = gate();
    const runner = new QueueRunner(queue, [
      counting(2),
      async () => {
        await goOn.opened;
        throw new OutOfRangeError('done');
      },
    ]);
    const [first, second] = runner.createThreads({ start: true });
    await first?.join();
    expect(queue.closed).toBe(false);
    goOn.open();
    await second?.join();
    expect(queue.closed).toBe(true);
    expect(await drained(queue)).toEqual([0, 1]);
  });

  it.each(['without an error', 'with an error'])(
    'is closed by a stop %s, and waiting enqueues are cancelled',
    async (how) => {
      const coord = new Coordinator();
      const queue = new BoundedQueue<number>({ capacity: 1 });
      const runner = new QueueRunner(queue, [(q) => q.enqueue(1), (q) => q.enqueue(2)]);
      const threads = runner.createThreads({ coordinator: coord, start: true });
      await turn();
      const error = new RangeError('elsewhere');
      if (how === 'with an error') coord.requestStop(error);
      else coord.requestStop();
      await coord.join(threads).catch((joined: unknown) => expect(joined).toBe(error));
      expect(queue.closed).toBe(true);
      // The CancelledErrors of the ops do not count as errors.
      expect(coord.stopRecord?.suppressedCount).toBe(0);
      expect(await drained(queue)).toHaveLength(1);
    },
  );

  it('is closed by a stop that is cleared at once', async () => {
    const coord = new Coordinator();
    const queue = new BoundedQueue<number>({ capacity: 1 });
    const runner = new QueueRunner(queue, [(q) => q.enqueue(1)]);
    const threads = runner.createThreads({ coordinator: coord, start: true });
    coord.requestStop();
    coord.clearStop();
    await Promise.all(threads.map((thread) => thread.join()));
    expect(queue.closed).toBe(true);
  });

  it('has its enqueues cancelled by a stop that the last op sees before its doorbell rings', async () => {
    const coord = new Coordinator();
    const queue = new BoundedQueue<number>({ capacity: 1 });
    await queue.enqueue(1);
    const waiting = queue.enqueue(2).catch((error: unknown) => error);
    const op = (): void => {
      coord.stopAfter(1);
      while (!coord.shouldStop());
      throw new CancelledError('the stop');
    };
    new QueueRunner(queue, [op]).createThreads({ coordinator: coord, start: true });
    await expect(coord.join()).rejects.toThrow(DeadlineExceededError);
    expect(await waiting).toBeInstanceOf(CancelledError);
  });

  it('has its closeOp and cancelOp called once each, and their errors are nobody’s', async () => {
    const coord = new Coordinator();
    const queue = new BoundedQueue<number>({ capacity: 1, coordinator: coord });
    const calls: string[] = [];
    const noting = (name: string) => (given: unknown) => {
      calls.push(`${name} ${given === queue}`);
      throw new Error('of no interest');
    };
    const runner = new QueueRunner(queue, [(q) => q.enqueue(1), (q) => q.enqueue(1)], {
      closeOp: noting('close'),
      cancelOp: noting('cancel'),
    });
    runner.createThreads({ coordinator: coord, start: true });
    await turn();
    coord.requestStop();
    await coord.join();
    expect(calls).toHaveLength(2);
    expect(new Set(calls)).toEqual(new Set(['cancel true', 'close true']));
    expect(coord.stopRecord?.suppressedCount).toBe(0);
    expect(queue.closed).toBe(true); // by the runner, as closeOp has failed
  });

  it('needs no stop for a join to come to its end', async () => {
    const coord = new Coordinator();
    const queue = new BoundedQueue<number>({ capacity: 9 });
    const threads = new QueueRunner(queue, [counting(3)]).createThreads({
      coordinator: coord,
      start: true,
    });
    await coord.join();
    expect(threads.map(({ alive }) => alive)).toEqual([false, false]);
  });
});

describe('what is refused', () => {
  const queue = new BoundedQueue({ capacity: 1 });
  const op = (): void => {};

  it('no ops at all', () => {
    expect(() => new QueueRunner(queue, [])).toThrow(InvalidArgumentError);
  });

  it.each<[string, () => unknown]>([
    ['a value that is not a queue', () => new QueueRunner(wrong({}), [op])],
    ['a queue that only inherits', () => new QueueRunner(wrong(Object.create(queue)), [op])],
    ['ops that are no array', () => new QueueRunner(queue, wrong(op))],
    ['an op that is a string', () => new QueueRunner(queue, [op, wrong('file:///op.mjs')])],
    ['a name that is not a string', () => new QueueRunner(queue, [op], { name: wrong(1) })],
    [
      'a closeOp that is not a function',
      () => new QueueRunner(queue, [op], { closeOp: wrong('close') }),
    ],
    [
      'a cancelOp that is not a function',
      () => new QueueRunner(queue, [op], { cancelOp: wrong(null) }),
    ],
    ['no error types', () => new QueueRunner(queue, [op], { queueClosedErrors: wrong('E') })],
    [
      'null for error types',
      () => new QueueRunner(queue, [op], { queueClosedErrors: wrong(null) }),
    ],
    ['a wrong type', () => new QueueRunner(queue, [op], { queueClosedErrors: [wrong(Map)] })],
    ['options that are not an object', () => new QueueRunner(queue, [op], wrong([]))],
    ['wrong options', () => new QueueRunner(queue, [op]).createThreads(wrong(1))],
    [
      'a value that is not a coordinator',
      () => new QueueRunner(queue, [op]).createThreads({ coordinator: wrong({}) }),
    ],
    [
      'a start that is not a boolean',
      () => new QueueRunner(queue, [op]).createThreads({ start: wrong(1) }),
    ],
  ])('%s', (_, call) => {
    expect(call).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }));
  });

  it('changes nothing', () => {
    const coord = new Coordinator();
    const runner = new QueueRunner(queue, [op]);
    expect(() => runner.createThreads({ coordinator: coord, start: wrong('yes') })).toThrow(
      TypeError,
    );
    expect(coord.threads).toEqual([]);
    expect(runner.createThreads()).toHaveLength(1);
  });

  it('changes nothing, although an op has no name to give', () => {
    const nameless = Object.defineProperty(new URL('file:///op.mjs'), 'protocol', {
      get() {
        throw new RangeError('no name');
      },
    });
    const runner = new QueueRunner(queue, [nameless]);
    for (let round = 0; round < 2; round++) {
      expect(() => runner.createThreads()).toThrow(new RangeError('no name'));
    }
  });
});
