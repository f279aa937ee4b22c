// A worker that answers messages `{ number, operation, handle }` with `{ number, answer }`.
import { Worker } from 'node:worker_threads';

/** @returns the worker, and `ask(operation, handle)`, which resolves to its answer */
export function startAnswering(url) {
  const worker = new Worker(url);
  const asked = new Map();
  worker.on('message', ({ number, answer }) => {
    asked.get(number)(answer);
    asked.delete(number);
  });
  let number = 0;
  const ask = (operation, handle) =>
    new Promise((resolve) => {
      asked.set(++number, resolve);
      worker.postMessage({ number, operation, handle });
    });
  return { worker, ask };
}
