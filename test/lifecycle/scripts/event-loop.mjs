// Which uses of a coordinator keep an event loop alive, and which do not. argv: the name of a
// story below, and `worker` to run it in a worker. If nothing keeps the event loop alive during
// an `await` of the main module, Node ends the process with exit code 13.
import { executionAsyncId } from 'node:async_hooks';
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { isMainThread, Worker } from 'node:worker_threads';
import { Coordinator, LooperThread } from 'allstop';
import { say } from './say.mjs';

const coord = new Coordinator();
const never = new Promise(() => {});
const abandoned = (promise) => promise.catch(() => {});

/** Has a stop requested by a deadline, which does not keep the event loop alive itself. */
const stopSoon = () => coord.stopAfter(150);

/** Whether promises of this thread have ids, as they do while anything hooks them: they are slower. */
const areHooked = async () => {
  await Promise.resolve();
  return executionAsyncId() !== 0;
};

const stories = {
  async 'hooks of promises'() {
    const inTask = coord.start(async () => say('in a task', { hooked: await areHooked() }));
    await inTask;
    await new Promise((resolve) => LooperThread.loop(coord, 60_000, resolve));
    await setImmediate();
    say('after it', { hooked: await areHooked() });
    coord.requestStop();
    await coord.join();
    say('ended', { hooked: await areHooked() });
  },
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
  // The worker ends only because nothing keeps its event loop alive any more.
  const [code] = await once(worker, 'exit');
  say('worker ended', { code });
} else await stories[story]();
