// Two copies of the package in one process, in ./a and ./b, and an addon that gets coordinators
// of both.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const load = (copy) =>
  import(new URL(`./${copy}/node_modules/allstop/dist/index.js`, import.meta.url).href);
const a = await load('a');
const b = await load('b');
assert.notEqual(a.Coordinator, b.Coordinator);
const addon = createRequire(import.meta.url)(process.argv[2]);

const ofA = new a.Coordinator({ name: 'of a' });
const ofB = new b.Coordinator({ name: 'of b' });
assert.throws(() => a.Coordinator.attach(ofB.handle), { code: 'ERR_ALLSTOP_INVALID_HANDLE' });
assert.throws(() => b.Coordinator.attach(ofA.handle), { code: 'ERR_ALLSTOP_INVALID_HANDLE' });
assert.throws(() => b.Coordinator.attach(ofA), { code: 'ERR_ALLSTOP_INVALID_HANDLE' });
assert.throws(() => new a.BoundedQueue({ capacity: 1, coordinator: ofB }), {
  code: 'ERR_INVALID_ARG_TYPE',
  message: /an instance of Coordinator of another copy of the package/,
});

// The addon works with both, and a stop of one copy's coordinator does not reach the other copy.
const readerOfA = addon.start(ofA, 'reader of a');
const readerOfB = addon.start(ofB, 'reader of b');
addon.write(readerOfA, Buffer.from('!'));
await assert.rejects(ofA.join(), (error) => error instanceof a.NativeError);
assert.equal(ofB.shouldStop(), false);
assert.deepEqual(
  ofB.threads.map(({ name, alive }) => [name, alive]),
  [['reader of b', true]],
);
ofB.requestStop(new b.OutOfRangeError('all read'));
await ofB.join();
assert.equal(addon.seen(readerOfB), 'OutOfRangeError: all read');
assert.deepEqual([...ofA.threads, ...ofB.threads], []);
console.log('  ok: two copies in one process');
