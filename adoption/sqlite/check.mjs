// What allstop/sqlite gives to an unpatched binding: how soon an endless query ends at a stop and at
// a deadline, and what obeying costs. Run by ../run.mjs: `check.mjs better-sqlite3|node:sqlite`.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { obey } from 'allstop/sqlite';

const SAMPLES = 100;
const DEADLINE_MS = 20;
const ENDLESS =
  'WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t';
const COUNT = ENDLESS.replace('FROM t)', 'FROM t WHERE n < 200000)');

function open(name) {
  const module = createRequire(import.meta.url)(name);
  return name === 'node:sqlite'
    ? new module.DatabaseSync(':memory:', { allowExtension: true })
    : new module(':memory:');
}

const sorted = (values) => values.toSorted((a, b) => a - b);
const at = (values, share) => sorted(values)[Math.floor(share * (values.length - 1))];
const say = (what, values) =>
  console.log(
    `${what}: p50 ${at(values, 0.5).toFixed(2)} ms, p99 ${at(values, 0.99).toFixed(2)} ms`,
  );

/** Runs a query without an end, and returns when it was interrupted. */
function interruptedAt(db) {
  assert.throws(() => db.prepare(ENDLESS).get(), /interrupted/);
  return process.hrtime.bigint();
}

function queriesASecond(db) {
  const query = db.prepare(COUNT);
  const start = performance.now();
  for (let i = 0; i < 5; i++) query.get();
  return 5000 / (performance.now() - start);
}

if (isMainThread) {
  const [, , name] = process.argv;
  const coord = new Coordinator();
  const worker = new Worker(new URL(import.meta.url), {
    workerData: { name, handle: coord.handle },
  });
  const message = () => new Promise((resolve) => worker.once('message', resolve));
  const stops = [];
  for (let i = 0; i < SAMPLES; i++) {
    await message(); // it begins its query
    await new Promise((resolve) => setTimeout(resolve, 5));
    const ended = message();
    const start = process.hrtime.bigint();
    coord.requestStop();
    stops.push(Number((await ended) - start) / 1e6);
    coord.clearStop();
    worker.postMessage('again');
  }
  say('an endless query ended after the stop', stops);
  coord.requestStop(); // it may have begun a query again, which terminate() cannot end
  await worker.terminate();
  coord.clearStop();

  const db = open(name);
  const late = [];
  for (let i = 0; i < SAMPLES; i++) {
    const child = coord.child();
    obey(db, child);
    const start = process.hrtime.bigint();
    child.stopAfter(DEADLINE_MS);
    late.push(Number(interruptedAt(db) - start) / 1e6 - DEADLINE_MS);
    await child.join().catch(() => {}); // its DeadlineExceededError
  }
  say('an endless query ended after its deadline', late);

  const ratios = [];
  for (let round = 0; round < 21; round++) {
    obey(db, null);
    const without = queriesASecond(db);
    obey(db, coord);
    ratios.push(without / queriesASecond(db));
  }
  const [low, median, high] = [0.25, 0.5, 0.75].map((share) => at(ratios, share).toFixed(3));
  console.log(
    `time of a query that obeys, beside one that does not: ${median} (${low} to ${high})`,
  );
} else {
  const db = open(workerData.name);
  obey(db, Coordinator.attach(workerData.handle));
  const once = () => {
    parentPort.postMessage('begins');
    parentPort.postMessage(interruptedAt(db));
  };
  parentPort.on('message', once);
  once();
}
