// @module-tag nats
/** `resources`: what a node has, counted while functions use it. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { module } from '../../support/clusters.ts';
import { isPending } from '../../support/gate.ts';
import { NatsScene } from '../../support/nats-scene.ts';
import { Visits } from '../../support/visits.ts';

let scene: NatsScene;
const visits = new Visits();

beforeEach(async () => {
  scene = await NatsScene.open();
  await visits.open();
});
afterEach(async () => {
  const closing = scene.close();
  await visits.close();
  await closing;
});

describe('resources', () => {
  it('are those of the node that runs the function, as many as it has at once', async () => {
    const cluster = scene.coordinator({ minWorkers: 2, module }, { cancelGraceMs: 600_000 });
    scene.spawn({ task: 0, slots: 3, module });
    scene.spawn({ task: 1, slots: 3, module, resources: 'gpu=2,licence=1' });
    await cluster.ready();
    expect(cluster.workers[1]).toMatchObject({ resources: { gpu: 2, licence: 1 } });
    const gpu = (name: string): Promise<any> =>
      cluster.run('hold', [visits.path, name], { resources: { gpu: 1 } });
    const runs = ['a', 'b', 'c'].map(gpu);
    const [a, b] = [await visits.next('a'), await visits.next('b')];
    const place = cluster.run('where', [], { resources: { licence: 1 } });
    expect(await place).toMatchObject({ workerIndex: 1 });
    expect(await cluster.run('add', [1, 2])).toBe(3);
    expect(visits.names.toSorted()).toEqual(['a', 'b']); // the third thread is free, but no GPU is
    expect(await isPending(runs[2] as Promise<any>)).toBe(true);
    a.pass('A');
    const c = await visits.next('c');
    for (const visit of [b, c]) visit.pass();
    expect(await runs[0]).toBe('A');
    await Promise.all(runs);
  });

  it('that no node has are waited for, since one may come; a deadline says so', async () => {
    const cluster = scene.coordinator({ minWorkers: 1, module });
    scene.spawn({ task: 0, module });
    await cluster.ready();
    const late = cluster.run('where', [], { resources: { gpu: 1 }, timeoutMs: 300 });
    await expect(late).rejects.toThrow(/: it has waited for a worker with gpu=1$/);
    const waiting = cluster.run('where', [], { resources: { gpu: 1 } });
    const absent = cluster.run('where', [], { worker: 2 });
    scene.spawn({ task: 1, module, resources: 'gpu=1' });
    expect(await waiting).toMatchObject({ workerIndex: 1 });
    scene.spawn({ task: 2, module });
    expect(await absent).toMatchObject({ workerIndex: 2 });
  });
});
