// Queries of node:sqlite that obey a coordinator. Says 'unavailable' where there is no node:sqlite.
import { isMainThread, parentPort } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { obey } from 'allstop/sqlite';
import { say } from './say.mjs';

const ENDLESS =
  'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(x) FROM c';

const COUNT = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 100000)';
const LONG = `${COUNT} SELECT sum(x) FROM c`;

const sqlite = await import('node:sqlite').catch(() => undefined);
if (sqlite === undefined) say('unavailable');
else if (isMainThread) await main();
else work();

function open(options = { allowExtension: true }) {
  return new sqlite.DatabaseSync(':memory:', options);
}

/** 'ran', or the message of the error. */
function outcome(query) {
  try {
    query();
    return 'ran';
  } catch (error) {
    return error.message;
  }
}

async function main() {
  const coord = new Coordinator({ stopGracePeriodMs: 20_000 });
  const worker = coord.spawn(new URL(import.meta.url));
  const said = [];
  await new Promise((resolve) => {
    worker.on('message', (message) => {
      said.push(message);
      resolve();
    });
  });
  coord.requestStop();
  await coord.join();
  say('blocked', { said });

  const db = open();
  const short = () => outcome(() => db.prepare('SELECT 1').get());
  const first = new Coordinator();
  obey(db, first);
  const ran = short();
  db.exec('CREATE TABLE t(a); BEGIN; INSERT INTO t VALUES (1)');
  first.requestStop();
  const stopped = short();
  const rollback = outcome(() => db.exec('\t/* undo * / */ -- all\n ROLLBACK'));
  const others = ['/* ROLLBACK */ SELECT 1', '-- ROLLBACK\nSELECT 1', 'REPLACE INTO t VALUES (1)'];
  const noRollbacks = others.map((sql) => outcome(() => db.prepare(sql).all()));
  const other = new Coordinator();
  obey(db, other);
  const replaced = short();
  other.requestStop();
  obey(db, null);
  const ended = short();
  obey(db, first);
  first.clearStop();
  const cleared = short();
  say('short', { ran, stopped, rollback, noRollbacks, replaced, ended, cleared });

  const child = first.child();
  obey(db, child, { everySteps: 10 });
  child.stopAfter(50);
  const deadline = outcome(() => db.prepare(ENDLESS).get());
  db.close();
  db.open();
  const reopened = short();
  obey(db, child);
  say('deadline', { deadline, parent: first.shouldStop(), reopened, again: short() });

  const reading = new Coordinator();
  obey(db, reading);
  const reader = db.prepare(`${COUNT} SELECT x FROM c WHERE x = 1 OR x = 100000`).iterate();
  const { x } = reader.next().value;
  db.exec('BEGIN; ROLLBACK'); // which runs in spite of a stop, but only that
  reading.requestStop();
  say('reader', { first: x, stopped: outcome(() => reader.next()) });

  db.function('allstop_obeys', () => 1); // ends the obedience, as close() does
  say('function', { free: outcome(() => db.prepare(LONG).get()) });

  const [, , binary] = process.argv;
  if (binary !== undefined) {
    say('extension', { alone: outcome(() => open().loadExtension(binary)) });
  }

  let code;
  try {
    obey(open({}), first);
  } catch (error) {
    ({ code } = error);
  }
  say('refused', { code });
}

function work() {
  const db = open();
  obey(db, Coordinator.current());
  parentPort.postMessage('asks');
  parentPort.postMessage(outcome(() => db.prepare(ENDLESS).get()));
}
