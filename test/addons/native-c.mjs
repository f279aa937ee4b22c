// Scenarios for examples/native-c, which scripts/test-package.sh builds against the packed tarball.
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

const loadAddon = () => createRequire(import.meta.url)('./build/Release/reader.node');

/** Starts a reader and waits until its thread has served `text`: now it waits in poll(). */
async function startReader(addon, coord, name, text = 'work') {
  const reader = addon.start(coord, name);
  assert.equal(addon.write(reader, Buffer.from(text)), text.length);
  await until(() => addon.served(reader) === text.length);
  return reader;
}

const scenarios = {
  async 'two environments load the addon at once'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    const worker = coord.spawn(new URL(import.meta.url), { workerData: { role: 'reader' } });
    const reader = await startReader(addon, coord, 'of main');
    await once(worker, 'message');
    assert.deepEqual(aliveThreads(coord), ['of main', 'of the worker']);
    const exited = exitCode(worker);
    coord.requestStop();
    await coord.join();
    assert.equal(await exited, 0);
    assert.deepEqual(coord.threads, []);
    assert.equal(addon.seen(reader), '');
  },

  async 'an error of the C thread arrives in JavaScript'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    const other = await startReader(addon, coord, 'other');
    const reader = addon.start(coord, 'reader');
    addon.write(reader, Buffer.from('ab!cd'));
    await assert.rejects(coord.join(), (error) => {
      assert.ok(error instanceof NativeError);
      assert.equal(error.name, 'ReaderError');
      assert.equal(error.message, 'a bad byte was read');
      assert.equal(error.code, 'E_READER');
      return true;
    });
    assert.equal(coord.stopRecord.requester.threadName, 'reader');
    assert.equal(addon.served(reader), 2);
    assert.equal(addon.seen(other), 'ReaderError: a bad byte was read');
  },

  async 'an error of JavaScript arrives in the C thread'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    const reader = await startReader(addon, coord, 'reader');
    const worker = coord.spawn(new URL(import.meta.url), { workerData: { role: 'thrower' } });
    worker.on('error', () => {}); // the coordinator reports this error; here it is expected
    await assert.rejects(coord.join(), { name: 'TypeError', message: 'disk gone' });
    assert.equal(addon.seen(reader), 'TypeError: disk gone');
  },

  async 'a stop wakes the poll loop, and one that was there before it'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    const reader = await startReader(addon, coord, 'polling');
    coord.requestStop();
    await coord.join();
    assert.deepEqual(coord.threads, []);
    assert.equal(addon.write(reader, Buffer.from('nobody reads it')), 15);
    assert.equal(addon.served(reader), 4);
    coord.clearStop();
    coord.requestStop();
    addon.start(coord, 'late');
    await coord.join();
    assert.deepEqual(coord.threads, []);
  },

  async 'a thread outlives the worker that started it'() {
    const coord = new Coordinator();
    const worker = startWorker(import.meta.url, 'starter', coord);
    assert.equal(await exitCode(worker), 0);
    // The worker that loaded the addon has ended: only its native thread still runs its code.
    assert.deepEqual(aliveThreads(coord), ['survivor']);
    coord.requestStop(new RangeError('late'));
    await assert.rejects(coord.join(), { name: 'RangeError' });
    assert.deepEqual(coord.threads, []);
  },

  async 'a thread outlives a worker that is terminated'() {
    const coord = new Coordinator();
    const worker = startWorker(import.meta.url, 'reader', coord);
    await once(worker, 'message');
    await worker.terminate();
    assert.deepEqual(aliveThreads(coord), ['of the worker']);
    coord.requestStop();
    await coord.join();
  },

  async 'a thread outlives its object'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    for (let i = 0; i < 20; ++i) addon.start(coord, `reader ${i}`);
    await new Promise(setImmediate);
    globalThis.gc();
    await new Promise(setImmediate); // Node runs the finalizers of collected objects
    assert.equal(aliveThreads(coord).length, 20);
    coord.requestStop();
    await coord.join();
  },

  async 'a full pipe does not block JavaScript'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    const reader = await startReader(addon, coord, 'reader');
    coord.requestStop();
    await coord.join();
    const bytes = Buffer.alloc(1 << 20);
    while (addon.write(reader, bytes) > 0);
  },

  async 'wrong arguments are refused'() {
    const addon = loadAddon();
    const coord = new Coordinator();
    refusesWhatIsNoCoordinator((value) => addon.start(value, 'reader'));
    assert.throws(() => addon.start(coord), /string/);
    assert.throws(() => addon.start(), /string/);
    const reader = addon.start(coord, 'reader');
    for (const other of [undefined, null, {}, coord, new Proxy(reader, {})]) {
      assert.throws(() => addon.write(other, Buffer.from('x')), { name: 'TypeError' });
      assert.throws(() => addon.served(other), { name: 'TypeError' });
    }
    assert.throws(() => addon.write(reader, 'x'), { name: 'TypeError' });
    refusesWhatIsNoCoordinator((value) => addon.start(value === 1 ? reader : value, 'reader'));
    coord.requestStop();
    await coord.join();
  },
};

await run(import.meta.url, scenarios, {
  async reader() {
    const coord = sharedCoordinator();
    await startReader(loadAddon(), coord, 'of the worker');
    parentPort.postMessage('started');
    await coord.waitForStop();
  },
  async starter() {
    await startReader(loadAddon(), sharedCoordinator(), 'survivor');
  },
  thrower() {
    throw new TypeError('disk gone');
  },
});
