// A task of a Piscina is cancelled by Ctrl-C, and its thread goes on with the next one.
import { Piscina } from 'piscina';
import { cancellable } from './cancellable.mjs';

const filename = new URL('./search.mjs', import.meta.url).href;
const pool = new Piscina({ filename, minThreads: 1, maxThreads: 1 });
const interrupted = new AbortController();
process.once('SIGINT', () => interrupted.abort());

const search = (task, signal) => cancellable(signal, (stop) => pool.run({ ...task, stop }));

const { threadId } = await search({ from: 1, ending: 21 }, interrupted.signal);
console.log('searching until Ctrl-C');
try {
  await search({ from: 1, ending: 22 }, interrupted.signal); // no square ends with 22
} catch (error) {
  console.log(error.name);
}
const next = await search({ from: 1, ending: 21 }, new AbortController().signal);
console.log(next.threadId === threadId ? 'the same thread goes on' : 'another thread goes on');
await pool.destroy();
