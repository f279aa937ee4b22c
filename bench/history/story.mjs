/**
 * node story.mjs SUBJECT STORY COUNT, for callgrind. SUBJECT is a `dist` folder of any commit, or a peer.
 *
 *   import    the import alone (of a pool)
 *   calls     one worker, COUNT calls one after the other
 *   waves     one worker, COUNT calls, 64 at once
 */

import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { importPeer } from '../peers.mjs';

const [, , subject, story, count = '0'] = process.argv;
const peerModule = (name) =>
  fileURLToPath(new URL(`../cluster-peers/${name}.mjs`, import.meta.url));

/** Each imports what it needs, and then makes a pool, whose `run(a, b)` resolves to the sum. */
const subjects = {
  async nothing() {
    return () => {};
  },
  async piscina() {
    const Piscina = await importPeer('piscina');
    return () => {
      const filename = peerModule('default-export');
      const pool = new Piscina({ filename, minThreads: 1, maxThreads: 1 });
      return { run: (a, b) => pool.run({ a, b }), close: () => pool.destroy() };
    };
  },
  async workerpool() {
    const workerpool = await importPeer('workerpool');
    return () => {
      const options = { minWorkers: 1, maxWorkers: 1, workerType: 'thread' };
      const pool = workerpool.pool(peerModule('workerpool'), options);
      return { run: (a, b) => pool.exec('add', [a, b]), close: () => pool.terminate() };
    };
  },
  async allstop() {
    const { ClusterCoordinator, LocalStrategy } = await import(
      pathToFileURL(join(resolve(subject), 'cluster/index.js'))
    );
    return () => {
      const module = new URL('../cluster-tasks.mjs', import.meta.url);
      const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
      const scheduled = async (args) => (await cluster.schedule('add', args)).fetch();
      const run = cluster.run === undefined ? scheduled : (args) => cluster.run('add', args);
      return { run: (a, b) => run([a, b]), close: () => cluster.close() };
    };
  },
};

const make = await (subjects[subject] ?? subjects.allstop)();
if (story !== 'import') {
  const { run, close } = make();
  const atOnce = story === 'waves' ? 64 : 1;
  for (let done = 0; done < Number(count); done += atOnce) {
    await Promise.all(Array.from({ length: atOnce }, (_, index) => run(index, 1)));
  }
  await close();
}
