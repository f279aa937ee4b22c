/** The queries of sqlite.mjs. Needs node:sqlite. */

import { DatabaseSync } from 'node:sqlite';
import { Coordinator } from '../dist/index.js';
import { obey } from '../dist/sqlite/index.js';
import { inTurn, quick, report } from './rounds.mjs';
import { quantile } from './statistics.mjs';

const COUNT = quick ? 10_000 : 400_000;
const STOP_MS = 5;
const STOPS = quick ? 3 : 100; // of a round
const ROUNDS = quick ? 1 : 5;

const counting = (limit) =>
  `WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT ${limit})
   SELECT count(*) FROM numbers`;
const db = new DatabaseSync(':memory:', { allowExtension: true });
const query = db.prepare(counting(COUNT));
const endless = db.prepare(counting(-1));
const coord = new Coordinator();

/** Milliseconds of processor time. */
function msOfQuery(coordinator) {
  obey(db, coordinator);
  const before = process.cpuUsage();
  query.all();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** Milliseconds from the deadline to the exception. */
function msToException() {
  const child = coord.child();
  obey(db, child);
  const start = performance.now();
  child.stopAfter(STOP_MS);
  try {
    endless.all();
  } catch (error) {
    if (!/interrupted/.test(error.message)) throw error;
  }
  return performance.now() - start - STOP_MS;
}

const steps = await inTurn({
  rounds: 11,
  samples: 5,
  ours: () => msOfQuery(coord),
  peer: () => msOfQuery(null),
});
const worst = [];
for (let round = 0; round < ROUNDS; round++) {
  worst.push(quantile(Array.from({ length: STOPS }, msToException), 0.99));
}
report({ 'sqlite/steps': steps, 'sqlite/stop': { ours: worst } });
