import assert from 'node:assert/strict';
import { Coordinator } from 'allstop';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import {
  fakeStraggler,
  Gate,
  killWorker,
  LinkProxy,
  StragglersError,
  tripAfter,
} from 'allstop/testing';

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
const module = new URL('./cluster-tasks.mjs', import.meta.url);
const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
const { error } = await killWorker(cluster, { worker: 0 });
assert.equal(error.code, 'ERR_ALLSTOP_UNAVAILABLE');
assert.equal(await cluster.run('add', [1, 2]), 3);
await cluster.close();
