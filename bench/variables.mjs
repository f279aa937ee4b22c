/** `assignAdd` of a variable of a cluster of threads, beside bare shared memory. */

import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { inTurn, quick, report } from './rounds.mjs';

const ADDS = quick ? 100 : 50_000;
const FLOATS = 10_000;
const module = new URL('variables-tasks.mjs', import.meta.url);
const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
await cluster.ready();

const shared = (Type, length) => new Type(new SharedArrayBuffer(length * Type.BYTES_PER_ELEMENT));
const number = await cluster.variable('number', 0);
const floats = await cluster.variable('floats', new Float64Array(FLOATS));
const values = Float64Array.from({ length: FLOATS }, (_, index) => index);
const word = shared(Int32Array, 1);
const lock = shared(Int32Array, 1);
const sums = shared(Float64Array, FLOATS);
const arrays = ADDS / 50;

report({
  'variables/number': await inTurn({
    rounds: 15,
    samples: 5,
    ours: () => cluster.run('assignAdd', [number, 1, ADDS]),
    peer: () => cluster.run('atomicsAdd', [word, ADDS]),
  }),
  'variables/floats': await inTurn({
    rounds: 15,
    samples: 5,
    ours: () => cluster.run('assignAdd', [floats, values, arrays]),
    peer: () => cluster.run('loopUnderLock', [lock, sums, values, arrays]),
  }),
});
await cluster.close();
