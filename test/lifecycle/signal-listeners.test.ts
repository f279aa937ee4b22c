// A listener on `coord.signal` is called after a stop, even if the Coordinator was collected.

import { getEventListeners } from 'node:events';
import { Worker } from 'node:worker_threads';
import { BoundedQueue, Coordinator } from 'allstop';
import { describe, expect, it } from 'vitest';
import { collectUntil } from '../support/collect.ts';
import { gate, turn } from '../support/gate.ts';
import { addon } from '../support/test-addon.ts';

/** A separate function: a listener keeps all variables of its scope alive. */
function reasonOf(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', ({ target }) => resolve((target as AbortSignal).reason));
  });
}

type Left = { heard: Promise<unknown> };

/**
 * Makes a coordinator whose public object is collected, so that only a listener on its signal is
 * left. `use` may pass it to a native thread first. Resolves `turns` turns after the collection;
 * `heard` is the reason that the listener gets.
 */
async function leaveOnlyAListener(
  use: (coord: Coordinator) => void,
  turns = 2,
  make: () => Coordinator = () => new Coordinator(),
): Promise<Left> {
  let collected = false;
  const registry = new FinalizationRegistry(() => {
    collected = true;
  });
  const left = ((): Left => {
    const coord = make();
    registry.register(coord, undefined);
    const heard = reasonOf(coord.signal);
    use(coord);
    return { heard };
  })();
  await collectUntil(() => collected);
  for (let i = 0; i < turns; ++i) await turn();
  return left;
}

describe('a listener that is all that is left', () => {
  it('hears of a stop by a native thread', async () => {
    const { heard } = await leaveOnlyAListener((coord) => {
      addon.startUnregistered(coord, 'request-error', 'late', 'RangeError|from C++|E_LATE');
    });
    addon.openGate('late');
    expect(await heard).toMatchObject({ message: 'from C++', code: 'E_LATE' });
  });

  it('hears of a stop by a native thread that has let go since', async () => {
    // The event loop serves the ring of the stop in one turn, and checks in another whether
    // anything else could stop the coordinator. The stop comes at a different time in each round.
    const pause = new Coordinator();
    for (let round = 0; round < 24; ++round) {
      const name = `a little later ${round}`;
      const { heard } = await leaveOnlyAListener((coord) => {
        addon.startUnregistered(coord, 'request', name);
      }, round % 4);
      addon.openGate(name);
      addon.result(name);
      pause.waitForStopSync(5); // most likely the native thread ends meanwhile
      expect(await heard, name).toMatchObject({ name: 'AbortError' });
    }
  });

  it('hears of a stop by a worker', async () => {
    const url = new URL('./scripts/stops-when-told.mjs', import.meta.url);
    let worker: Worker | undefined;
    const { heard } = await leaveOnlyAListener((coord) => {
      worker = new Worker(url, { workerData: coord.handle });
    });
    worker?.postMessage('stop');
    expect(await heard).toMatchObject({ name: 'AbortError' });
  });

  it('hears of a stop by an abort that it is linked to', async () => {
    const controller = new AbortController();
    const { heard } = await leaveOnlyAListener((coord) => coord.stopOnAbort(controller.signal));
    const reason = new Error('the reason');
    controller.abort(reason);
    expect(await heard).toBe(reason);
  });

  it('hears of the failure of a promise that was registered', async () => {
    const work = gate();
    const { heard } = await leaveOnlyAListener((coord) => coord.registerThread(work.opened));
    const failure = new Error('it failed');
    work.fail(failure);
    expect(await heard).toBe(failure);
  });

  it('hears of a deadline', async () => {
    const { heard } = await leaveOnlyAListener((coord) => coord.stopAfter(100));
    expect(await heard).toMatchObject({ name: 'DeadlineExceededError' });
  });

  it("hears of a parent's stop", async () => {
    const parent = new Coordinator();
    const nothing = (): void => {};
    const { heard } = await leaveOnlyAListener(nothing, 2, () => parent.child());
    parent.requestStop();
    expect(await heard).toMatchObject({ name: 'AbortError' });
  });
});

/** Resolves when the object that `make` registers is collected, to the rest that `make` returns. */
async function afterCollection<T>(make: (note: (dropped: object) => void) => T): Promise<T> {
  let collected = false;
  const registry = new FinalizationRegistry(() => {
    collected = true;
  });
  const rest = make((dropped) => registry.register(dropped, undefined));
  await collectUntil(() => collected);
  await turn();
  await turn(); // what was kept only for the collected object has been let go
  return rest;
}

describe('the signal of a child that was dropped', () => {
  const nothing = (): void => {};
  it.each([
    ['was read', nothing],
    [
      'had a listener, which was removed',
      (signal: AbortSignal): void => {
        signal.addEventListener('abort', nothing);
        signal.removeEventListener('abort', nothing);
      },
    ],
    [
      'was followed by a signal that is gone',
      (signal: AbortSignal): void => {
        void AbortSignal.any([signal]).aborted;
      },
    ],
  ] as const)('is collected while the parent lives: it %s', async (_, use) => {
    const parent = new Coordinator();
    await afterCollection((note) => {
      const { signal } = parent.child();
      use(signal);
      note(signal);
    });
    expect(parent.shouldStop()).toBe(false);
  });

  it('still aborts a signal that AbortSignal.any() has made of it', async () => {
    const parent = new Coordinator();
    const { heard } = await afterCollection((note) => {
      const child = parent.child();
      note(child);
      return { heard: reasonOf(AbortSignal.any([child.signal])) };
    });
    const error = new RangeError('for all');
    parent.requestStop(error);
    expect(await heard).toBe(error);
  });

  it.each([
    [
      'a listener',
      (signal: AbortSignal, heard: () => void): void => {
        signal.addEventListener('abort', heard);
      },
    ],
    [
      'an onabort',
      (signal: AbortSignal, heard: () => void): void => {
        // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the test is about it
        signal.onabort = heard;
      },
    ],
    [
      'a follower with a listener',
      (signal: AbortSignal, heard: () => void): void => {
        AbortSignal.any([signal]).addEventListener('abort', heard);
      },
    ],
  ] as const)('aborts with %s that is added after the child was collected', async (_, listen) => {
    const parent = new Coordinator();
    const left = afterCollection((note) => {
      const child = parent.child();
      note(child);
      return { signal: child.signal };
    });
    const { heard } = await left.then(({ signal }) => ({
      heard: new Promise<void>((resolve) => listen(signal, resolve)),
    }));
    for (let round = 0; round < 3; ++round) {
      globalThis.gc?.();
      await turn();
    }
    parent.requestStop();
    await heard;
  });

  it('says that it has aborted to code that only asks', async () => {
    const parent = new Coordinator();
    const { signal } = await afterCollection((note) => {
      const child = parent.child();
      note(child);
      return { signal: child.signal };
    });
    const error = new RangeError('for all');
    parent.requestStop(error);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBe(error);
    expect(() => signal.throwIfAborted()).toThrow(error);
  });
});

describe('a listener that keeps the event from all others', () => {
  it('keeps it from no wait and from no link', async () => {
    const user = new AbortController();
    const { signal } = user;
    signal.addEventListener('abort', (event) => event.stopImmediatePropagation());
    const linked = new Coordinator();
    linked.stopOnAbort(signal);
    const coord = new Coordinator();
    const queue = new BoundedQueue({ capacity: 1 });
    const waits = [
      coord.waitForStop(60_000, { signal }),
      coord.join([new Promise(() => {})], { signal }),
      queue.dequeue({ signal }),
    ];
    const ended = Promise.allSettled(waits);
    const reason = new Error('enough');
    user.abort(reason);
    expect(linked.stopRecord).toMatchObject({ error: reason });
    for (const outcome of await ended) expect(outcome).toEqual({ status: 'rejected', reason });
    queue.close();
  });
});

describe('any number of listeners', () => {
  it('hangs on a signal, without a warning', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): number => warnings.push(warning);
    process.on('warning', note);
    const coord = new Coordinator();
    const user = new AbortController();
    let heard = 0;
    for (let i = 0; i < 50; ++i) {
      coord.signal.addEventListener('abort', () => {
        ++heard;
      });
    }
    const { signal } = user;
    const forever = new Promise(() => {});
    const waits = Array.from({ length: 50 }, () => coord.waitForStop(60_000, { signal }));
    const joins = Array.from({ length: 50 }, () => coord.join([forever], { signal }));
    const ended = Promise.allSettled([...waits, ...joins]);
    expect(getEventListeners(signal, 'abort').length).toBeLessThan(11);

    const reason = new Error('enough');
    user.abort(reason);
    for (const outcome of await ended) expect(outcome).toEqual({ status: 'rejected', reason });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    coord.requestStop();
    expect(heard).toBe(50);
    await new Promise(setImmediate); // Node emits a warning in the next turn
    process.off('warning', note);
    expect(warnings).toEqual([]);
  });

  it('is taken off again by waits that end otherwise', async () => {
    const coord = new Coordinator();
    const { signal } = new AbortController();
    const waits = Array.from({ length: 20 }, (_, i) => coord.waitForStop(i, { signal }));
    const stopped = coord.waitForStop(60_000, { signal });
    await Promise.all(waits);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    coord.requestStop();
    await stopped;
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    await coord.join({ signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
