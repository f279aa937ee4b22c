/**
 * AbortSignals that are not Node's: those of polyfills, which have no `reason` and no
 * `throwIfAborted`, and those of jsdom, which test runners put in the place of Node's.
 */

import { BoundedQueue, Coordinator } from 'allstop';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { Gate } from 'allstop/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { ForeignController } from '../../support/foreign-abort.mjs';
import { Program } from '../../support/program.ts';

type Wait = (signal: AbortSignal) => Promise<unknown>;

const module = new URL('data:text/javascript,export const hang = () => new Promise(() => {})');
const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
afterAll(async () => {
  await cluster.close();
});

/** A coordinator with a thread that does not end. */
function busy(): Coordinator {
  const coord = new Coordinator();
  void coord.start(async () => new Promise(() => {}));
  return coord;
}

const full = new BoundedQueue<number>({ capacity: 1 });
full.enqueueSync(1);
const empty = new BoundedQueue<number>({ capacity: 1 });
const scheduled = cluster.schedule('hang');
const never = new ClusterCoordinator(
  new LocalStrategy({
    module: new URL('data:text/javascript,await new Promise(() => {})'),
    workers: 1,
  }),
);
afterAll(async () => {
  await never.close();
});

const waits: [string, Wait][] = [
  ['coord.waitForStop()', async (signal) => new Coordinator().waitForStop(undefined, { signal })],
  ['coord.join()', async (signal) => busy().join({ signal })],
  ['queue.enqueue()', async (signal) => full.enqueue(2, { signal })],
  ['queue.dequeue()', async (signal) => empty.dequeue({ signal })],
  ['queue.dequeueMany()', async (signal) => empty.dequeueMany(1, { signal })],
  ['cluster.ready()', async (signal) => never.ready({ signal })],
  ['cluster.run()', async (signal) => cluster.run('hang', [], { signal })],
  ['cluster.join()', async (signal) => cluster.join({ signal })],
  ['RemoteValue.fetch()', async (signal) => (await scheduled).fetch({ signal })],
  ['cluster.map()', async (signal) => cluster.map('hang', [[1]], { signal }).next()],
  ['gate.arrived()', async (signal) => new Gate().arrived(1, { signal })],
];

describe.each(waits)('%s with the signal of a polyfill', (_, wait) => {
  it('rejects with an AbortError if it has aborted before, or does now', async () => {
    const before = new ForeignController();
    before.abort();
    await expect(wait(before.signal)).rejects.toMatchObject({ name: 'AbortError' });
    const later = new ForeignController();
    const waiting = wait(later.signal);
    await new Promise(setImmediate);
    later.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
    expect(later.signal.listenerCount).toBe(0);
  });
});

describe('a signal that throws once a wait has begun', () => {
  const fails = (what: string) => (): never => {
    throw new Error(what);
  };

  it('strands no wait', async () => {
    let aborted: () => boolean = () => false;
    let abort = (): void => {};
    const signal = {
      get aborted() {
        return aborted();
      },
      get reason(): unknown {
        return fails('reason')();
      },
      addEventListener(_: string, listener: () => void) {
        aborted = fails('aborted');
        abort = listener;
      },
      removeEventListener: fails('remove'),
    } as unknown as AbortSignal;
    const queue = new BoundedQueue<number>({ capacity: 2 });
    const pending = [queue.dequeue({ signal }), queue.dequeue()];
    await new Promise(setImmediate);
    queue.enqueueSync(1);
    queue.enqueueSync(2);
    expect(await Promise.all(pending)).toEqual([1, 2]);
    aborted = () => false;
    const aborts = [queue.dequeue({ signal })];
    aborted = () => false;
    aborts.push(queue.dequeue({ signal }));
    abort();
    for (const wait of aborts) await expect(wait).rejects.toMatchObject({ name: 'AbortError' });
  });
});

it.each(['before', 'later'])(
  'a coordinator stops when the signal of a polyfill aborts (%s)',
  async (when) => {
    const coord = new Coordinator();
    const controller = new ForeignController();
    if (when === 'before') controller.abort();
    coord.stopOnAbort(controller.signal);
    controller.abort();
    await coord.join(); // without an error: an abort is a plain stop
    expect(coord.stopRecord).toMatchObject({ kind: 'plain', requester: { via: 'abort' } });
  },
);

it('the whole package works where AbortController is not the one of Node', async () => {
  const program = new Program('test/lib/base/scripts/foreign-controller.mjs');
  expect(await program.ended).toMatchObject({ code: 0, stdout: 'false 49 true\n', stderr: '' });
});
