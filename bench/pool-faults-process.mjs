/**
 * node pool-faults-process.mjs STORY POOL: plays a story of pool-faults.mjs with two workers, and
 * prints the cells of its row as JSON.
 */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { importPeer } from './peers.mjs';

const PATIENCE_MS = 10_000;
const [story, pool] = process.argv.slice(2);
const here = (name) => fileURLToPath(new URL(`cluster-peers/${name}.mjs`, import.meta.url));

async function ours(isolation) {
  const { ClusterCoordinator, LocalStrategy } = await import('../dist/cluster/index.js');
  const module = new URL('cluster-peers/faults.mjs', import.meta.url);
  const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2, isolation }));
  return (name, value) => cluster.run(name, [value]);
}

/** By pool: a function that calls a function of cluster-peers/faults.mjs. */
const POOLS = {
  'allstop, threads': () => ours('thread'),
  'allstop, processes': () => ours('process'),
  async Piscina() {
    const Piscina = await importPeer('piscina');
    const own = new Piscina({ filename: here('faults'), minThreads: 2, maxThreads: 2 });
    return (name, value) => own.run(value, { name });
  },
  async tinypool() {
    const Tinypool = await importPeer('tinypool');
    const own = new Tinypool({ filename: here('faults'), minThreads: 2, maxThreads: 2 });
    return (name, value) => own.run(value, { name });
  },
  async workerpool() {
    const workerpool = await importPeer('workerpool');
    const options = { minWorkers: 2, maxWorkers: 2, workerType: 'thread' };
    const own = workerpool.pool(here('faults-workerpool'), options);
    return (name, value) => own.exec(name, [value]);
  },
  async poolifier() {
    const { FixedThreadPool } = await importPeer('poolifier');
    const own = new FixedThreadPool(2, here('faults-poolifier'), { errorHandler: () => {} });
    return (name, value) => own.execute(value, name);
  },
};

const PENDING = Symbol('pending');
const late = new Promise((resolve) => {
  setTimeout(resolve, PATIENCE_MS, PENDING);
});

/** What becomes of a call: its value, an Error, or PENDING. */
const outcome = async (promise) =>
  Promise.race([promise.catch((error) => new Error(error?.message ?? String(error))), late]);

const outcomes = (promises) => Promise.all(promises.map(outcome));

const inWords = (found) => {
  if (found === PENDING) return `pending after ${PATIENCE_MS / 1_000} s`;
  return found instanceof Error ? found.message.split('\n')[0] : 'a result';
};

/** How many of the calls 0, 1, 2 ... have resolved, each to its argument. */
const right = (found) =>
  `${found.filter((value, index) => value === index).length} of ${found.length}`;

const STORIES = {
  async error(run) {
    const own = outcome(run('fail', 'A'));
    const others = await outcomes(Array.from({ length: 6 }, (_, index) => run('succeed', index)));
    return [inWords(await own), right(others)];
  },
  async poison(run) {
    const poison = outcome(run('exit', 0));
    const others = await outcomes(Array.from({ length: 20 }, (_, index) => run('succeed', index)));
    return [inWords(await poison), right(others)];
  },
  async finished(run) {
    const folder = mkdtempSync(join(tmpdir(), 'allstop-'));
    const file = join(folder, 'notes');
    const kills = (index) => index % 500 === 250;
    const found = await outcomes(
      Array.from({ length: 3_000 }, (_, value) =>
        run('note', { value, file, kills: kills(value) }),
      ),
    );
    const noted = readFileSync(file, 'utf8').trim().split('\n').map(Number);
    rmSync(folder, { recursive: true });
    const innocent = noted.filter((value) => !kills(value));
    const twice = innocent.length - new Set(innocent).size;
    const lost = found.filter((value, index) => !kills(index) && value !== index).length;
    return [String(twice), String(lost)];
  },
};

const cells = await STORIES[story](await POOLS[pool]());
process.stdout.write(JSON.stringify(cells), () => process.exit());
