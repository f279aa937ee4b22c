// Uses clusters of the installed package, with worker threads and with worker processes.
import assert from 'node:assert/strict';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import * as tasks from './cluster-tasks.mjs';

for (const isolation of ['thread', 'process']) {
  const module = new URL('./cluster-tasks.mjs', import.meta.url);
  const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2, isolation }));
  await cluster.ready();
  const sum = await cluster.schedule(tasks.add, [1, 2]);
  const tries = await cluster.schedule('dieOnce');
  assert.deepEqual(await cluster.fetch({ sum, tries: [tries] }), { sum: 3, tries: [2] });
  const numbers = cluster.createPerWorkerDataset(tasks.numbers, [5]).iterator();
  assert.equal(await (await cluster.schedule(tasks.next, [numbers])).fetch(), 5);
  await cluster.schedule('fail');
  await assert.rejects(cluster.join(), { name: 'TypeError', message: 'disk gone', code: 'E_DISK' });
  await cluster.close();
}
