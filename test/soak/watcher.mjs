// Another thread of the soak: waits for stops, and produces items.
import { parentPort } from 'node:worker_threads';
import { BoundedQueue, Coordinator } from 'allstop';

let stopped;

const operations = {
  attach(handle) {
    stopped = Coordinator.attach(handle).waitForStop();
  },
  seen: () => stopped,
  'is waiting': () => {},
  async produce(handle) {
    const queue = BoundedQueue.attach(handle);
    let count = 0;
    while (count < 400) await queue.enqueue(count++);
    return count;
  },
};

parentPort.on('message', async ({ number, operation, handle }) => {
  const answer = await operations[operation](handle);
  parentPort.postMessage({ number, answer });
});
