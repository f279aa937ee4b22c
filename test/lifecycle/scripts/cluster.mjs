// Checks the promises of a ClusterCoordinator, one after the other. argv: thread | process (the
// isolation of its workers).
import {
  CancelledError,
  ClusterCoordinator,
  DeadlineExceededError,
  LocalStrategy,
} from 'allstop/cluster';
import * as tasks from './cluster-tasks.mjs';
import { say } from './say.mjs';

const isolation = process.argv[2];
const module = new URL('./cluster-tasks.mjs', import.meta.url);
const strategy = new LocalStrategy({ module, workers: 2, isolation });
const cluster = new ClusterCoordinator(strategy, { cancelGraceMs: 50 });
const wrong = [];
const check = (what, holds) => {
  if (!holds) wrong.push(what);
};
const errorOf = (promise) => promise.then(() => undefined).catch((error) => error);

await cluster.ready();
const sums = [];
for (let n = 0; n < 1_000; n += 1) sums.push(await cluster.schedule(tasks.add, [n, 1]));
check(
  'results',
  (await cluster.fetch(sums)).every((sum, n) => sum === n + 1),
);

const broken = await cluster.schedule('fail');
const error = await errorOf(broken.fetch());
check('the class of an error', error instanceof RangeError && error.message === 'broken');
check('the fields of an error', error?.code === 'E_BROKEN' && error.extra?.get(1n) === null);
check('the first error, once', (await errorOf(cluster.join())) === error);
await cluster.join();

check('a dead worker', (await (await cluster.schedule('dieOnce')).fetch()) === 2);
check('its replacement', cluster.workers.reduce((sum, { restarts }) => sum + restarts, 0) === 1);

const iterator = cluster.createPerWorkerDataset(tasks.numbers, [5]).iterator();
check('a data set', (await (await cluster.schedule('next', [iterator])).fetch()) >= 5);

const late = await cluster.schedule('spin', [], { timeoutMs: 100 });
check('a deadline', (await errorOf(late.fetch())) instanceof DeadlineExceededError);
check('which fails nobody else', (await errorOf(cluster.join())) === undefined);

if (isolation === 'thread') {
  const memory = new SharedArrayBuffer(4);
  for (let n = 0; n < 100; n += 1) await cluster.schedule('increment', [memory]);
  await cluster.join();
  check('shared memory', new Int32Array(memory)[0] === 100);
}

const waiting = await cluster.schedule('untilAborted');
await cluster.schedule('stop');
check('a stop', (await errorOf(waiting.fetch())) instanceof CancelledError);
check('its error', cluster.coordinator.stopRecord?.error?.message === 'enough');
await cluster.close();
check(
  'its end',
  cluster.workers.every(({ state }) => state === 'lost'),
);
say('told', { wrong });
