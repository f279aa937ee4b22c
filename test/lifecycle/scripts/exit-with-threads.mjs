// A process with exitAfterStop whose worker or child process does not heed the stop.
// argv: 'worker' or 'child', and whether it 'computes' or 'waits'.
import { readSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';

const [kind, way, parent] = process.argv.slice(2);
const stdio = ['pipe', 'ignore', 'inherit', 'ipc'];

function ignoreTheStop(words) {
  Coordinator.current();
  Atomics.store(words, 0, 1);
  Atomics.notify(words, 0);
  if (way === 'waits') Atomics.wait(words, 0, 1);
  for (;;);
}

// Ends when the parent has ended: the end of the parent ends no child.
function ignoreTheStopOf(pid) {
  process.send('ready');
  if (way === 'waits') readSync(0, Buffer.alloc(1));
  while (process.ppid === pid);
  process.exit();
}

async function main() {
  const coord = new Coordinator({ name: 'app' });
  const url = new URL(import.meta.url);
  coord.exitAfterStop(500); // by then a busy machine, too, runs what ignores the stop
  if (kind === 'worker') {
    const words = new Int32Array(new SharedArrayBuffer(4));
    coord.spawn(url, { name: 'deaf', argv: [kind, way], workerData: words });
    await Atomics.waitAsync(words, 0, 0).value;
  } else {
    const child = coord.fork(url, [kind, way, String(process.pid)], { name: 'deaf', stdio });
    await new Promise((resolve) => child.once('message', resolve));
  }
  coord.requestStop();
}

if (parent !== undefined) ignoreTheStopOf(Number(parent));
else if (workerData !== null) ignoreTheStop(workerData);
else await main();
