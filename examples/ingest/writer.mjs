// The writer: a worker thread. A batch of rows, and the position in the file behind them, are one
// transaction: after a kill at any moment the table has what the position says, and no row more.
import { parentPort, workerData } from 'node:worker_threads';
import { BoundedQueue, CancelledError, OutOfRangeError } from 'allstop';
import { openDatabase } from './database.mjs';

const lines = BoundedQueue.attach(workerData.lines);
const db = openDatabase(workerData.database);
const insert = db.prepare('INSERT INTO rows (name, value) VALUES (?, ?)');
const move = db.prepare('UPDATE position SET bytes = ?');

function write(batch) {
  db.exec('BEGIN IMMEDIATE');
  try {
    for (const { text } of batch) {
      const { name, value } = JSON.parse(text);
      insert.run(name, value);
    }
    move.run(batch.at(-1).position);
    db.exec('COMMIT');
  } catch (error) {
    db.exec('ROLLBACK');
    throw error; // stops the reader, and is what the program ends with
  }
}

try {
  for (;;) {
    // As many as there are: the faster they come, the larger the transaction.
    const batch = await lines.dequeueMany(500);
    write(batch);
    parentPort.postMessage(batch.length);
  }
} catch (error) {
  // The queue is closed, or there was a stop: in either case it is empty.
  if (!(error instanceof OutOfRangeError || error instanceof CancelledError)) throw error;
} finally {
  db.close();
}
