// Scenarios for examples/native-worker, which scripts/test-package.sh builds against the packed
// tarball.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { Coordinator, NativeError } from 'allstop';
import {
  aliveThreads,
  exitCode,
  refusesWhatIsNoCoordinator,
  run,
  sharedCoordinator,
  startWorker,
  until,
} from './scenarios.mjs';

/**
 * Starts a pool and waits until all its threads wait for a job. Imports the addon only here:
 * some scenarios decide which environment loads it first.
 */
async function startPool(coord, threads) {
  const { WorkerPool } = await import('./index.mjs');
  const pool = new WorkerPool(coord, { threads });
  await until(() => pool.stats.waiting === threads);
  return pool;
}

const scenarios = {
  async 'the jobs are done, and a closed pool ends'() {
    const coord = new Coordinator();
    const pool = await startPool(coord, 3);
    for (let i = 0; i < 50; ++i) pool.push(100);
    pool.close();
    await coord.join();
    assert.deepEqual(pool.stats, {
      waiting: 0,
      queued: 0,
      done: 50,
      total: 50 * 25,
      stoppedBy: '',
    });
    assert.throws(() => pool.push(1), /closed/);
    assert.equal(coord.shouldStop(), false);
  },

  async 'two environments load the addon at once'() {
    const coord = new Coordinator();
    const worker = coord.spawn(new URL(import.meta.url), { workerData: { role: 'pool' } });
    const pool = await startPool(coord, 2);
    await once(worker, 'message');
    assert.deepEqual(aliveThreads(coord), ['worker 1', 'worker 1', 'worker 2', 'worker 2']);
    const exited = exitCode(worker);
    coord.requestStop();
    await coord.join();
    assert.equal(await exited, 0);
    assert.deepEqual(coord.threads, []);
    assert.equal(pool.stats.stoppedBy, '');
  },

  async 'an exception of a C++ thread arrives in JavaScript'() {
    const coord = new Coordinator();
    const pool = await startPool(coord, 3);
    pool.push(-1);
    await assert.rejects(coord.join(), (error) => {
      assert.ok(error instanceof NativeError);
      assert.equal(error.name, 'NativeError');
      assert.equal(error.message, 'the limit is negative');
      assert.equal(error.nativeType, 'std::invalid_argument');
      assert.equal(error.code, 'ERR_ALLSTOP_NATIVE');
      return true;
    });
    assert.match(coord.stopRecord.requester.threadName, /^worker [123]$/);
    assert.equal(pool.stats.stoppedBy, 'NativeError: the limit is negative');
  },

  async 'an error of JavaScript arrives in the C++ threads'() {
    const coord = new Coordinator();
    const pool = await startPool(coord, 2);
    pool.push(Number.MAX_SAFE_INTEGER); // a job that ends only on a stop
    await until(() => pool.stats.waiting === 1);
    const worker = coord.spawn(new URL(import.meta.url), { workerData: { role: 'thrower' } });
    worker.on('error', () => {}); // the coordinator reports this error; here it is expected
    await assert.rejects(coord.join(), { name: 'TypeError', message: 'disk gone' });
    assert.equal(pool.stats.stoppedBy, 'TypeError: disk gone');
  },

  async 'a stop wakes threads that wait, and one that was there before them'() {
    const coord = new Coordinator();
    await startPool(coord, 4);
    coord.requestStop();
    await coord.join();
    assert.deepEqual(coord.threads, []);
    coord.clearStop();
    coord.requestStop();
    const { WorkerPool } = await import('./index.mjs');
    new WorkerPool(coord, { threads: 2 });
    await coord.join();
    assert.deepEqual(coord.threads, []);
  },

  async 'threads outlive the worker that started them'() {
    const coord = new Coordinator();
    const worker = startWorker(import.meta.url, 'starter', coord);
    assert.equal(await exitCode(worker), 0);
    // The worker that loaded the addon has ended: only its native threads still run its code.
    assert.deepEqual(aliveThreads(coord), ['worker 1', 'worker 2']);
    coord.requestStop(new RangeError('late'));
    await assert.rejects(coord.join(), { name: 'RangeError' });
    assert.deepEqual(coord.threads, []);
  },

  async 'threads outlive a worker that is terminated'() {
    const coord = new Coordinator();
    const worker = startWorker(import.meta.url, 'pool', coord);
    await once(worker, 'message');
    await worker.terminate();
    assert.deepEqual(aliveThreads(coord), ['worker 1', 'worker 2']);
    coord.requestStop();
    await coord.join();
  },

  async 'a worker may be terminated amid calls of ours'() {
    const coord = new Coordinator();
    const worker = startWorker(import.meta.url, 'busy', coord);
    await once(worker, 'message');
    await worker.terminate();
    coord.requestStop();
    await coord.join();
  },

  async 'threads outlive their object'() {
    const coord = new Coordinator();
    const { WorkerPool } = await import('./index.mjs');
    for (let i = 0; i < 10; ++i) new WorkerPool(coord, { threads: 2 });
    await new Promise(setImmediate);
    globalThis.gc();
    await new Promise(setImmediate); // Node runs the finalizers of collected objects
    assert.equal(aliveThreads(coord).length, 20);
    coord.requestStop();
    await coord.join();
  },

  async 'wrong arguments are refused'() {
    const coord = new Coordinator();
    const { WorkerPool } = await import('./index.mjs');
    refusesWhatIsNoCoordinator((value) => new WorkerPool(value, { threads: 1 }));
    for (const threads of [0, -1, 1.5, Number.NaN, '2', 257]) {
      assert.throws(() => new WorkerPool(coord, { threads }), RangeError);
    }
    const pool = new WorkerPool(coord, { threads: 1 });
    assert.throws(() => pool.push('x'), TypeError);
    // The addon's own object is wrapped, too, but without allstop's type tag.
    const { Pool } = createRequire(import.meta.url)('./build/Release/native_worker.node');
    const bare = new Pool(coord, 1);
    assert.throws(() => new Pool(bare, 1), { code: 'ERR_ALLSTOP_INVALID_HANDLE' });
    assert.throws(() => Pool.prototype.stats.call({}), TypeError);
    coord.requestStop();
    await coord.join();
  },
};

await run(import.meta.url, scenarios, {
  async pool() {
    const coord = sharedCoordinator();
    await startPool(coord, 2);
    parentPort.postMessage('started');
    await coord.waitForStop();
  },
  async starter() {
    await startPool(sharedCoordinator(), 2);
  },
  async busy() {
    const pool = await startPool(sharedCoordinator(), 1);
    parentPort.postMessage('started');
    for (;;) pool.push(pool.stats.queued > 1000 ? -0 : 10);
  },
  thrower() {
    throw new TypeError('disk gone');
  },
});
