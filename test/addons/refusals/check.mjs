// Each build refuses wrong values with a TypeError. With C++ exceptions nothing after the refusal
// runs; without, the addon gets an empty object while the error is pending.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { BoundedQueue, Coordinator } from 'allstop';

const require = createRequire(import.meta.url);
for (const build of ['compiler', 'all', 'present', 'former', 'disabled']) {
  const addon = require(`./build/Release/${build}.node`);
  for (const take of ['coordinator', 'queue', 'variable', 'all']) {
    assert.throws(() => addon[take]({}), {
      name: 'TypeError',
      code: 'ERR_ALLSTOP_INVALID_HANDLE',
      message: /^((?!Received).)*\. Received an instance of Object$/,
    });
  }
  for (const mine of [new Proxy(new Coordinator(), {}), Object.create(new Coordinator())]) {
    assert.throws(() => addon.coordinator(mine), {
      code: 'ERR_ALLSTOP_INVALID_HANDLE',
      message:
        /\. Received an instance of Coordinator, but not one of allstop's itself: a Proxy, an object that inherits from one, or another class of that name$/,
    });
  }
  // A class whose name only begins as ours does.
  class Coord extends Map {}
  assert.throws(() => addon.coordinator(new Coord()), {
    message: /\. Received an instance of Coord$/,
  });
  assert.throws(() => addon.queue(new BoundedQueue({ capacity: 1 })), {
    name: 'TypeError',
    code: 'ERR_ALLSTOP_INVALID_ARGUMENT',
  });
  assert.equal(addon.ranOn(), build === 'disabled' ? 10 : 0, build);
}
