// Two addons, as if from different authors (one in C with node-gyp, one in C++ with CMake), share
// a coordinator: the threads of each addon see the error with which the other one failed.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { Coordinator } from 'allstop';
import { WorkerPool } from './index.mjs';

const addon = createRequire(import.meta.url)(process.argv[2]);
const coord = new Coordinator();

let reader = addon.start(coord, 'reader');
let pool = new WorkerPool(coord, { threads: 2 });
pool.push(-1);
await assert.rejects(coord.join(), { nativeType: 'std::invalid_argument' });
assert.equal(addon.seen(reader), 'NativeError: the limit is negative');

coord.clearStop();
reader = addon.start(coord, 'reader');
pool = new WorkerPool(coord, { threads: 2 });
addon.write(reader, Buffer.from('!'));
await assert.rejects(coord.join(), { name: 'ReaderError', code: 'E_READER' });
assert.equal(pool.stats.stoppedBy, 'ReaderError: a bad byte was read');
assert.deepEqual(coord.threads, []);
console.log('  ok: two addons share a coordinator');
