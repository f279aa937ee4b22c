// The example of the README with the installed package: a worker fails, and all threads stop.
import assert from 'node:assert/strict';
import { Coordinator, OutOfRangeError } from 'allstop';

const coord = new Coordinator({ name: 'consumer' });
const waiter = coord.spawn(new URL('./worker.mjs', import.meta.url), { workerData: 'wait' });
coord.spawn(new URL('./worker.mjs', import.meta.url), { workerData: 'fail' });
const done = coord.start((same) => same.waitForStop());
await assert.rejects(coord.join(), { name: 'TypeError', message: 'disk gone', code: 'E_DISK' });
await done;
assert.equal(waiter.threadId, -1);
assert.match(String(coord.explain()), /TypeError: disk gone \(E_DISK\)/);

coord.clearStop();
coord.requestStop(new OutOfRangeError('all read'));
await coord.join();
assert.equal(coord.stopRecord.kind, 'clean');
