// Reads a file of JSON lines into a table of SQLite. The reader waits while the queue is full; the
// writer is a worker thread, since SQLite blocks its thread. Rows are neither lost nor doubled,
// however the program ends: run it again, and it goes on where it was.
import { createReadStream } from 'node:fs';
import { BoundedQueue, Coordinator } from 'allstop';
import { openDatabase, positionIn } from './database.mjs';

const [file, database] = process.argv.slice(2);
if (database === undefined) {
  console.error('Usage: node examples/ingest/main.mjs FILE.jsonl FILE.db');
  process.exit(2);
}

/** The lines from byte `start` on, each with the position behind it; the last may have no end. */
async function* linesOf(path, start) {
  let position = start;
  let rest = Buffer.alloc(0);
  for await (const chunk of createReadStream(path, { start })) {
    rest = Buffer.concat([rest, chunk]);
    let begin = 0;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10, begin)) {
      const text = rest.toString('utf8', begin, end);
      begin = end + 1;
      if (text !== '') yield { text, position: position + begin };
    }
    position += begin;
    rest = rest.subarray(begin);
  }
  if (rest.length > 0) yield { text: rest.toString(), position: position + rest.length };
}

await Coordinator.run(
  async (coord) => {
    const db = openDatabase(database);
    const start = positionIn(db);
    db.close();

    const lines = new BoundedQueue({ capacity: 1_000, name: 'lines', coordinator: coord });

    const writer = coord.spawn(new URL('./writer.mjs', import.meta.url), {
      name: 'writer',
      workerData: { database, lines: lines.handle },
    });
    writer.on('message', (rows) => console.log(`${rows} rows written`));

    for await (const line of linesOf(file, start)) await lines.enqueue(line); // waits for room
    lines.close(); // ends the writer, when it has written what is left
  },
  { name: 'ingest', stopOnSignals: ['SIGINT', 'SIGTERM'] },
);
