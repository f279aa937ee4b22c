// What keeps an event loop alive and what does not. argv: a story below, and `worker` to
// tell it in a worker. An `await` that nothing keeps alive ends a process with code 13.
import { once } from 'node:events';
import { isMainThread, Worker } from 'node:worker_threads';
import { Coordinator, LooperThread } from 'allstop';
import { say } from './say.mjs';

const coord = new Coordinator();
const never = new Promise(() => {});
const abandoned = (promise) => promise.catch(() => {});

/** A stop from elsewhere, by a deadline that itself keeps nothing alive. */
const stopSoon = () => coord.stopAfter(150);

const stories = {
  async 'pending wait'() {
    stopSoon();
    say('ended', { stopped: await coord.waitForStop() });
  },
  async 'pending join'() {
    stopSoon();
    const error = await coord.join([never], { stopGracePeriodMs: 0 }).catch((thrown) => thrown);
    say('ended', { error: error.name });
  },
  async 'endless pending wait with a signal'() {
    stopSoon();
    const { signal } = new AbortController();
    say('ended', { stopped: await coord.waitForStop(Number.POSITIVE_INFINITY, { signal }) });
  },
  async 'looper that waits'() {
    stopSoon();
    await LooperThread.loop(coord, 60_000, () => {}).join();
    say('ended', { stopped: coord.shouldStop() });
  },
  async 'looper whose run waits'() {
    stopSoon();
    const run = () => new Promise((resolve) => setTimeout(resolve, 50).unref());
    await LooperThread.loop(coord, null, run).join();
    say('ended', { stopped: coord.shouldStop() });
  },
  async 'unstarted looper'() {
    new LooperThread(coord, null, { target: () => {} });
    say('ended');
  },
  async 'settled wait'() {
    coord.requestStop();
    say('ended', { stopped: await coord.waitForStop() });
  },
  async 'timed-out wait'() {
    say('ended', { stopped: await coord.waitForStop(20) });
  },
  async 'aborted waits'() {
    const controller = new AbortController();
    const { signal } = controller;
    const waits = [
      coord.waitForStop(Number.POSITIVE_INFINITY, { signal }),
      coord.waitForStop(60_000, { signal }),
      coord.join([never], { signal }),
    ];
    controller.abort();
    const outcomes = await Promise.allSettled(waits);
    say('ended', { outcomes: outcomes.map(({ status }) => status) });
  },
  async 'abandoned signal'() {
    coord.signal.addEventListener('abort', () => {});
    coord.registerThread(never);
    void abandoned(coord.start(() => never));
    coord.stopAfter(60_000);
    say('ended');
  },
};

const [story, where] = process.argv.slice(2);
if (where === 'worker' && isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { argv: [story, where] });
  // Its event loop has run dry: nothing but that ends it.
  const [code] = await once(worker, 'exit');
  say('worker ended', { code });
} else await stories[story]();
