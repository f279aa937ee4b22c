import assert from 'node:assert/strict';
import { Coordinator } from 'allstop';
import { fakeStraggler, Gate, LinkProxy, StragglersError, tripAfter } from 'allstop/testing';

const coord = new Coordinator();
const gate = new Gate({ coordinator: coord });
const task = coord.start(() => gate.pass());
await gate.arrived();
const straggler = fakeStraggler(coord);
tripAfter(coord, 2);
assert.equal(coord.shouldStop(), false);
assert.equal(coord.shouldStop(), true);
await task;
await assert.rejects(coord.join({ stopGracePeriodMs: 0 }), StragglersError);
straggler[Symbol.dispose]();
assert.deepEqual(coord.leftBehind, []);
const proxy = await LinkProxy.open({ to: 'nats://127.0.0.1:4222' });
assert.match(proxy.url, /^nats:/);
await proxy[Symbol.asyncDispose]();
