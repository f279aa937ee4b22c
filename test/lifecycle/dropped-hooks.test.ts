// A hook of a coordinator that the program has dropped runs at the stop, and is then collected.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { describe, expect, it } from 'vitest';
import { collectUntil } from '../support/collect.ts';
import { gate, turn } from '../support/gate.ts';

async function collectALot(): Promise<void> {
  let rounds = 0;
  await collectUntil(() => ++rounds > 5);
}

/** Notes hooks, and says whether a hook that was noted is gone. */
class Collected {
  #count = 0;
  readonly #registry = new FinalizationRegistry(() => ++this.#count);

  note<T extends object>(hook: T): T {
    this.#registry.register(hook, undefined);
    return hook;
  }

  readonly any = (): boolean => this.#count > 0;
}

describe('a hook of a child that was dropped', () => {
  it.each([
    ['that refers to nothing', () => {}],
    ['that refers to the child', (child: Coordinator) => child.shouldStop()],
  ] as const)('runs when the parent stops: one %s', async (_, use) => {
    const parent = new Coordinator();
    const ran = new Promise<void>((resolve) => {
      const child = parent.child();
      child.onStop(() => {
        use(child);
        resolve();
      });
    });
    await collectALot();
    parent.requestStop();
    await ran;
  });

  const stops = [
    ['its stop', (child: Coordinator) => child.requestStop()],
    ['its stop with an error', (child: Coordinator) => child.requestStop(new Error('failed'))],
    [
      'its stop, with a listener on its signal',
      (child: Coordinator) => {
        child.signal.addEventListener('abort', () => child.shouldStop());
        child.requestStop();
      },
    ],
    [
      'its stop, before a deadline',
      (child: Coordinator) => {
        child.stopAfter(3_600_000);
        child.requestStop();
      },
    ],
    [
      'two stops',
      (child: Coordinator) => {
        child.requestStop();
        child.clearStop();
        child.requestStop();
      },
    ],
  ] as const;

  it.each(stops)('is collected when it has run for %s', async (_, stop) => {
    const parent = new Coordinator();
    const hooks = new Collected();
    await (async () => {
      const child = parent.child();
      child.onStop(hooks.note(() => child.shouldStop()));
      stop(child);
      await child.join().catch(() => {});
    })();
    await collectUntil(hooks.any);
    expect(parent.shouldStop()).toBe(false);
  });

  it('is collected when it has run for the stop of the parent', async () => {
    const grandparent = new Coordinator();
    const hooks = new Collected();
    await (async () => {
      const parent = grandparent.child();
      const child = parent.child();
      child.onStop(hooks.note(() => child.shouldStop()));
      parent.requestStop();
      await child.join();
    })();
    await collectUntil(hooks.any);
    expect(grandparent.shouldStop()).toBe(false);
  });

  it('is collected when a deadline has stopped the child after it was dropped', async () => {
    const parent = new Coordinator();
    const hooks = new Collected();
    const ran = new Promise<void>((resolve) => {
      const child = parent.child();
      child.onStop(hooks.note(() => resolve()));
      child.stopAfter(50);
    });
    await collectALot();
    const alive = setTimeout(() => {}, 60_000); // a deadline keeps no event loop alive
    await ran;
    clearTimeout(alive);
    await collectUntil(hooks.any);
    expect(parent.shouldStop()).toBe(false);
  });
});

describe('a hook that has run', () => {
  it('runs again after clearStop(), though garbage was collected meanwhile', async () => {
    const parent = new Coordinator();
    const child = parent.child();
    let runs = 0;
    const again = gate();
    (() => {
      child.onStop(() => {
        runs += 1;
        if (runs === 2) again.open();
      });
    })();
    child.requestStop();
    await child.join();
    await collectALot();
    child.clearStop();
    await collectALot();
    parent.requestStop();
    await again.opened;
    expect(child.shouldStop()).toBe(true);
  });

  it('runs again when the child was dropped after its clearStop()', async () => {
    const parent = new Coordinator();
    const again = gate();
    await (async () => {
      const child = parent.child();
      let runs = 0;
      child.onStop(() => {
        runs += 1;
        if (runs === 2 && child.shouldStop()) again.open();
      });
      child.requestStop();
      await child.join();
      await collectALot();
      child.clearStop();
    })();
    await collectALot();
    parent.requestStop();
    await again.opened;
  });

  it('runs again after a worker, which is all that has the child, has cleared its stop', async () => {
    const parent = new Coordinator();
    let runs = 0;
    const again = gate();
    const url = new URL('../fixtures/actor-worker.mjs', import.meta.url);
    const worker = await (async () => {
      const child = parent.child();
      child.onStop(() => {
        runs += 1;
        if (runs === 2 && child.shouldStop()) again.open();
      });
      const actor = new Worker(url, { workerData: child.handle });
      actor.postMessage({ id: 1, operation: 'requestStop' });
      await once(actor, 'message');
      await child.join();
      return actor;
    })();
    await collectALot();
    worker.postMessage({ id: 2, operation: 'clearStop' });
    await once(worker, 'message');
    await collectALot();
    parent.requestStop();
    await again.opened;
    await turn();
    expect(runs).toBe(2);
    await worker.terminate();
  });
});
