// Scenarios for rust/test-addon: what the crate `allstop` promises, seen from JavaScript.
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

const loadAddon = () => createRequire(import.meta.url)('./addon.node');

const scenarios = {
  async 'the types of the crate are those of the package'() {
    const addon = loadAddon();
    addon.layout(new Coordinator());
    assert.equal(addon.calls(), 1);
  },

  async 'a thread works until the stop, and is joined'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    addon.start(coord);
    await until(() => addon.rounds() > 0);
    assert.deepEqual(aliveThreads(coord), ['worker']);
    coord.requestStop();
    await coord.join();
    assert.deepEqual(coord.threads, []);
    assert.equal(addon.seen(), 'no error');
  },

  async 'the signal of a coordinator is as good'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    addon.start(coord.signal);
    coord.requestStop(new TypeError('disk gone'));
    await assert.rejects(coord.join(), { name: 'TypeError' });
    assert.equal(addon.seen(), 'TypeError: disk gone');
  },

  async 'a join blocks until the threads have ended, and says why they were stopped'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    addon.wait(coord);
    addon.joins(coord);
    coord.requestStop(new TypeError('disk gone'));
    await until(() => addon.calls() === 1);
    assert.equal(addon.seen(), 'ERR_ALLSTOP_STOPPED_BY_ERROR: TypeError: disk gone');
  },

  async 'the error of a hook beside a stop without one is why a join fails'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    coord.onStop(() => {
      throw new RangeError('not flushed');
    });
    addon.wait(coord);
    addon.joins(coord);
    coord.requestStop();
    await until(() => addon.calls() === 1);
    assert.equal(addon.seen(), 'ERR_ALLSTOP_STOPPED_BY_ERROR: RangeError: not flushed');
  },

  async 'a join waits for registered work of another thread'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    addon.registers(coord);
    assert.deepEqual(aliveThreads(coord), ['task']);
    coord.requestStop();
    await coord.join();
    assert.equal(addon.calls(), 1);
  },

  async 'registered work that fails is the error of the stop'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    addon.registersAndFails(coord);
    await assert.rejects(coord.join(), { message: 'no route' });
    assert.equal(coord.stopRecord.requester.threadName, 'task');
  },

  async 'a panic is the error of the stop'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    addon.wait(coord);
    addon.panics(coord);
    await assert.rejects(coord.join(), (error) => {
      assert.ok(error instanceof NativeError);
      assert.equal(error.message, 'sector 7 is bad');
      assert.equal(error.nativeType, 'panic');
      return true;
    });
    assert.equal(coord.stopRecord.requester.threadName, 'panicking');
    assert.equal(addon.calls(), 100, 'the captures are dropped before the thread counts as ended');
    assert.equal(addon.seen(), 'NativeError: sector 7 is bad');
  },

  async 'a panic with a value is one, too'() {
    const coord = new Coordinator();
    loadAddon().panicsWithAValue(coord);
    await assert.rejects(coord.join(), {
      message: 'A thread panicked with a value that is no text',
    });
  },

  async 'an error keeps class and code'() {
    const coord = new Coordinator();
    loadAddon().fails(coord);
    await assert.rejects(coord.join(), (error) => {
      assert.ok(error instanceof RangeError);
      assert.equal(error.code, 'E_SECTOR');
      return true;
    });
  },

  async 'a callback runs once, at the stop or at once'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    addon.onStop(coord);
    addon.onStopDropped(coord);
    assert.equal(addon.calls(), 0);
    coord.requestStop();
    assert.equal(addon.calls(), 1);
    coord.clearStop();
    coord.requestStop();
    assert.equal(addon.calls(), 1);
    addon.onStop(coord);
    assert.equal(addon.calls(), 2);
  },

  async 'a callback may drop itself'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    addon.onStopDropsItself(coord);
    coord.requestStop();
    assert.equal(addon.calls(), 1);
  },

  async 'a future is ready at a stop, also one that is cleared at once'() {
    const addon = loadAddon();
    for (const isCleared of [false, true]) {
      const coord = new Coordinator();
      addon.awaitStop(coord);
      coord.requestStop();
      if (isCleared) coord.clearStop();
      await until(() => coord.threads.length === 0);
    }
    const stopped = new Coordinator();
    stopped.requestStop();
    addon.awaitStop(stopped);
    await stopped.join();
    assert.equal(addon.calls(), 3);
  },

  async 'a child stops with its parent'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    addon.child(coord);
    coord.requestStop();
    await coord.join();
    assert.equal(addon.calls(), 1);
  },

  async 'two environments load the addon at once'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    const worker = coord.spawn(new URL(import.meta.url), { workerData: { role: 'starter' } });
    addon.start(coord);
    await once(worker, 'message');
    assert.deepEqual(aliveThreads(coord), ['worker', 'worker']);
    coord.requestStop();
    await coord.join();
  },

  async 'a thread outlives the worker that started it'() {
    const coord = new Coordinator();
    const worker = startWorker(import.meta.url, 'starter', coord);
    assert.equal(await exitCode(worker), 0);
    assert.deepEqual(aliveThreads(coord), ['worker']);
    coord.requestStop(new RangeError('late'));
    await assert.rejects(coord.join(), { name: 'RangeError' });
  },

  async 'a thread outlives a worker that is terminated'() {
    const coord = new Coordinator();
    const worker = startWorker(import.meta.url, 'waiter', coord);
    await once(worker, 'message');
    await worker.terminate();
    assert.deepEqual(aliveThreads(coord), ['worker']);
    coord.requestStop();
    await coord.join();
  },

  async 'what is no coordinator is refused'() {
    const addon = loadAddon();
    refusesWhatIsNoCoordinator((value) => addon.start(value));
    refusesWhatIsNoCoordinator((value) => addon.start(value ?? new AbortController().signal));
  },
};

await run(import.meta.url, scenarios, {
  starter() {
    loadAddon().start(sharedCoordinator());
    parentPort.postMessage('started');
  },
  async waiter() {
    const coord = sharedCoordinator();
    loadAddon().start(coord);
    parentPort.postMessage('started');
    await coord.waitForStop();
  },
});
