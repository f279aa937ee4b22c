/** What an event of the timeline costs: of the core, of a cluster, and for a trivial call. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { alone, quick, report } from './rounds.mjs';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const EVENTS = quick ? 1_000 : 100_000;
const WAVE = quick ? 100 : 5_000;
const TURN = 64; // events between two turns of the microtask queue, as in a message of calls
const EVENTS_OF_A_CALL = 3; // queued, started, ended

/** The ring is internal to the package: compiled here by itself. */
async function importRing() {
  const folder = mkdtempSync(join(tmpdir(), 'allstop-bench-'));
  const file = join(folder, 'call-events.mjs');
  const bundle = await rolldown({ input: path('../lib/events/timeline.ts') });
  await bundle.write({ file });
  await bundle.close();
  const module = await import(pathToFileURL(file));
  rmSync(folder, { recursive: true });
  return module;
}

const { CallEvents, CALL } = await importRing();
const ring = new CallEvents();

const turned = Promise.resolve();

/** Nanoseconds of an event of which `turn` come in one turn of the microtask queue. */
async function nsOfEvent(turn) {
  const start = process.hrtime.bigint();
  for (let event = 0; event < EVENTS; ) {
    for (const end = event + turn; event < end; event++) ring.note(CALL.queued, event, 'add');
    await turned;
  }
  return Number(process.hrtime.bigint() - start) / EVENTS;
}

/** The same loop without the events. */
async function nsOfTurns(turn) {
  const start = process.hrtime.bigint();
  for (let event = 0; event < EVENTS; event += turn) await turned;
  return Number(process.hrtime.bigint() - start) / EVENTS;
}

const measure = (turn) =>
  alone({
    rounds: 15,
    samples: 9,
    ours: async () => Math.max(0, (await nsOfEvent(turn)) - (await nsOfTurns(turn))),
  });

const native = JSON.parse(
  execFileSync(path('native/build/timeline_cost'), [String(quick ? 2 : 31)], { encoding: 'utf8' }),
);

const module = new URL('cluster-tasks.mjs', import.meta.url);
const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }));
await cluster.ready();
const call = await alone({
  rounds: 11,
  samples: 5,
  async ours() {
    const start = process.hrtime.bigint();
    const runs = [];
    for (let index = 0; index < WAVE; index++) runs.push(cluster.run('add', [index, 1]));
    await Promise.all(runs);
    return Number(process.hrtime.bigint() - start) / WAVE;
  },
});
await cluster.close();

const inMany = await measure(TURN);
const percent = (ns, at) => (100 * EVENTS_OF_A_CALL * ns) / call.ours[at % call.ours.length];
report({
  'timeline/native': native,
  'timeline/event': inMany,
  'timeline/alone': await measure(1),
  'timeline/calls': { ours: inMany.ours.map(percent) },
});
