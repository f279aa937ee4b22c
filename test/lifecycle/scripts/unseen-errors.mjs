// Errors that threads throw, and who is given them before the process ends. argv: stories below,
// which are told in turn; the errors of several say which story they are of.
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { BoundedQueue, Coordinator, OutOfRangeError, QueueRunner } from 'allstop';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { say } from './say.mjs';
import { addon } from './test-addon.mjs';

const told = isMainThread ? process.argv.slice(2) : [];
let message = 'nobody looked';
const fail = () => {
  throw new RangeError(message);
};

/** A coordinator with a task that has failed. */
async function failed() {
  const coord = new Coordinator({ name: 'app' });
  await coord.start(fail, { name: 'reader' });
  return coord;
}

const cluster = () =>
  new ClusterCoordinator(
    new LocalStrategy({
      module: new URL('../../fixtures/cluster-tasks.mjs', import.meta.url),
      workers: 1,
    }),
  );

const ignore = () => {};

/** A QueueRunner without a coordinator, whose op has failed. */
async function failedRunner() {
  const runner = new QueueRunner(new BoundedQueue({ capacity: 1 }), [fail]);
  for (const thread of runner.createThreads({ start: true })) await thread.join();
  return runner;
}

const stories = {
  // Nobody is given the error.
  task: failed,
  async exit() {
    await failed();
    process.exit(0);
  },
  async 'exit in a deferred function'() {
    await Coordinator.run((coord) => {
      coord.defer(() => process.exit(0));
      void coord.start(fail);
    });
  },
  async 'own exit code'() {
    await failed();
    process.exitCode = 7;
  },
  async collected() {
    await failed();
    globalThis.gc();
  },
  async suppressed() {
    const coord = new Coordinator();
    coord.requestStop();
    await coord.start(fail);
    await coord.join();
  },
  async 'body, after that of a task'() {
    const run = Coordinator.run(async (coord) => {
      coord.requestStop(new TypeError('passed by the program'));
      fail();
    });
    await run.catch(ignore);
  },
  async hook() {
    const coord = new Coordinator();
    const error = new RangeError(message); // the hook runs later, maybe beside another story
    coord.onStop(() => Promise.reject(error));
    coord.requestStop();
  },
  async 'a worker with a link'() {
    const worker = new Worker(`throw new RangeError('${message}')`, { eval: true });
    const coord = new Coordinator();
    coord.stopOnClose(worker, { as: 'error' });
    await once(worker, 'exit').catch(ignore);
  },
  async 'a worker with a link to another event'() {
    const worker = new Worker(`throw new RangeError('${message}')`, { eval: true });
    new Coordinator().stopOnClose(worker, { events: ['message'], as: 'error' });
    await new Promise((resolve) => worker.once('exit', resolve));
  },
  async 'given to main before a hook rethrows it'() {
    const back = await failed();
    await back.join().catch(ignore);
    const coord = new Coordinator({ name: 'front' });
    coord.onStop(() => back.join());
    coord.requestStop(new TypeError('passed by the program'));
    await coord.join().catch(ignore);
  },
  async 'a hook that rethrows'() {
    const back = await failed();
    const coord = new Coordinator({ name: 'front' });
    coord.onStop(() => back.join());
    coord.requestStop(new TypeError('passed by the program'));
    await coord.join().catch(ignore);
  },
  async 'task and hook'() {
    const coord = new Coordinator();
    coord.onStop(ignore); // takes no record, so it is not given the error
    const hooks = { async close() {}, async ['c' + 1]() {} };
    for (const hook of Object.values(hooks)) coord.onStop(hook);
    coord.onStop(async function named() {});
    await coord.start(fail);
  },
  async spawned() {
    const coord = new Coordinator();
    const worker = coord.spawn(`throw new RangeError('${message}')`, { eval: true });
    await once(worker, 'exit').catch(ignore);
  },
  async 'in a worker'() {
    new Coordinator(); // the main thread uses the package, too
    await once(new Worker(new URL(import.meta.url), { workerData: 'task' }), 'exit');
  },
  async 'in a worker alone'() {
    const worker = new Worker(new URL(import.meta.url), { workerData: 'task' });
    [process.exitCode] = await once(worker, 'exit');
  },
  async 'in two workers that exit together'() {
    const exiting = new Int32Array(new SharedArrayBuffer(4));
    const options = { workerData: { story: 'exit together', exiting } };
    const both = [1, 2].map(() => new Worker(new URL(import.meta.url), options));
    const ended = await Promise.all(both.map((worker) => once(worker, 'exit')));
    process.exitCode = Math.max(...ended.flat());
  },
  /** Each worker has told its errors, or not, before either ends. */
  async 'exit together'() {
    const { exiting } = workerData;
    if (Atomics.add(exiting, 0, 1) === 0) await failed();
    else new Coordinator();
    process.on('exit', () => {
      Atomics.add(exiting, 0, 1);
      Atomics.notify(exiting, 0);
      for (let seen = 0; seen < 4; seen = Atomics.load(exiting, 0)) Atomics.wait(exiting, 0, seen);
    });
  },
  async 'in a worker with two copies of the code'() {
    const worker = new Worker(new URL(import.meta.url), { workerData: 'two copies' });
    [process.exitCode] = await once(worker, 'exit');
  },
  async 'two copies'() {
    await failed();
    const copy = await import(new URL('../../../dist/core.js?copy', import.meta.url));
    const Copied = Object.values(copy).find(({ name }) => name === 'Coordinator');
    say('copied', { isOther: Copied !== Coordinator });
    new Copied();
  },
  async 'in a worker that is terminated'() {
    const worker = new Worker(new URL(import.meta.url), { workerData: 'await the end' });
    await once(worker, 'message');
    await worker.terminate();
  },
  async 'await the end'() {
    await failed();
    parentPort.postMessage('failed');
    setInterval(ignore, 1_000);
  },
  /** The main thread has written the errors when the worker's task fails. */
  async 'in a worker that outlives the exit of the main thread'() {
    await failed();
    const state = new Int32Array(new SharedArrayBuffer(4));
    const options = { workerData: { story: 'fail at the exit', state } };
    const worker = new Worker(new URL(import.meta.url), options);
    await once(worker, 'message');
    worker.unref();
    process.on('exit', () => {
      Atomics.store(state, 0, 1);
      Atomics.notify(state, 0);
      Atomics.wait(state, 0, 1);
    });
  },
  async 'fail at the exit'() {
    const { state } = workerData;
    parentPort.postMessage('ready');
    Atomics.wait(state, 0, 0);
    await failed();
    Atomics.store(state, 0, 2);
    Atomics.notify(state, 0);
    setInterval(ignore, 1_000);
  },
  async native() {
    const coord = new Coordinator();
    addon.start(coord, 'throw', 'native thread', message);
    addon.openGate('native thread');
    await coord.waitForStop();
  },
  async function() {
    await cluster().schedule('fail', [message]);
  },
  async 'hook in a worker process'() {
    const module = new URL('../../fixtures/cluster-tasks.mjs', import.meta.url);
    const isolation = 'process';
    const teardown = 'afterHooks';
    const own = new ClusterCoordinator(
      new LocalStrategy({ module, workers: 1, isolation, teardown }),
    );
    await own.run('failInHook', [message]);
    own.coordinator.requestStop();
    await own.close();
  },
  'queue runner': failedRunner,
  // Standard error is full: the test reads it after 'full'.
  async 'full pipe'() {
    await failed();
    void process.stderr; // opens it: from now on it does not block
    const line = `${'x'.repeat(1023)}\n`;
    process.prependListener('exit', () => {
      try {
        for (;;) writeSync(2, line);
      } catch (error) {
        say('full', { code: error.code });
      }
    });
  },
  async 'twice the same'() {
    const error = new RangeError(message);
    for (let times = 0; times < 2; times++) {
      await new Coordinator().start(() => Promise.reject(error));
    }
  },

  // Somebody is.
  'given to join': async () => (await failed()).join().catch(ignore),
  'given to run': () => Coordinator.run((coord) => coord.start(fail)).catch(ignore),
  'given to raise': async () => {
    const coord = await failed();
    coord.stopOnException(() => coord.raiseRequestedException());
  },
  'given to record': async () => (await failed()).stopRecord,
  'given to explain': async () => (await failed()).explain(),
  'given to signal': async () => (await failed()).signal.reason,
  async 'given to a hook'() {
    const coord = new Coordinator();
    coord.onStop((record) => say('hook', { message: record.error.message }));
    await coord.start(fail);
  },
  async 'given to a hook with any parameters'() {
    const coord = new Coordinator();
    coord.onStop((...args) => say('hook', { message: args[0].error.message }));
    await coord.start(fail);
  },
  async 'given to a hook with arguments'() {
    const coord = new Coordinator();
    coord.onStop(function () {
      say('hook', { message: arguments[0].error.message });
    });
    await coord.start(fail);
  },
  async 'given to a hook in native code'() {
    const coord = new Coordinator();
    const log = {
      last: '',
      keep(...args) {
        this.last = args[0].error.message;
      },
    };
    coord.onStop(log.keep.bind(log));
    coord.onStop(console.log);
    await coord.start(fail);
  },
  async 'given to another thread'() {
    const coord = await failed();
    const data = { workerData: coord.handle };
    await once(new Worker(new URL(import.meta.url), data), 'exit');
  },
  'given to exceptionsRaised': async () => (await failedRunner()).exceptionsRaised,
  async 'given to native code'() {
    const coord = await failed();
    addon.call(coord, 'join', '0');
  },
  'exit listener'() {
    new Coordinator().stopOnUncaught();
    process.on('exit', fail);
  },
  async 'given to fetch'() {
    await (await cluster().schedule('fail', [message])).fetch().catch(ignore);
  },
  async 'given to a later fetch'() {
    const own = cluster();
    const remote = await own.schedule('fail', [message]);
    await own.join().catch(ignore);
    await remote.fetch().catch(ignore);
  },
  async 'given to the join of a cluster'() {
    const own = cluster();
    await own.schedule('fail', [message]);
    await own.join().catch(ignore);
  },

  async 'given to a fetch that throws undefined'() {
    const own = cluster();
    const remote = await own.schedule('throwUndefined');
    await own.join().catch(ignore);
    await remote.fetch().catch(ignore);
  },

  // Nothing was lost.
  passed: () => new Coordinator().requestStop(new RangeError(message)),
  swallowed: () => new Coordinator().stopOnException(fail),
  clean: () => new Coordinator().start(() => Promise.reject(new OutOfRangeError(message))),
  async echo() {
    const coord = new Coordinator();
    const waiting = coord.start(() => once(process, 'never', { signal: coord.signal }));
    coord.requestStop();
    await waiting;
  },
  deadline: async () => {
    const coord = new Coordinator();
    coord.stopAfter(0);
    await coord.waitForStop();
  },
};

if (isMainThread) {
  for (const story of told) {
    if (told.length > 1) message = `nobody looked at <${story}>`;
    await stories[story]();
  }
} else if (typeof workerData === 'string') {
  await stories[workerData]();
} else if (typeof workerData.story === 'string') {
  await stories[workerData.story]();
} else {
  await Coordinator.attach(workerData).join().catch(ignore);
}
