// A worker that posts the result of Coordinator.current() in itself and in a worker that it
// starts.
import { once } from 'node:events';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';

const current = Coordinator.current();
const report = { name: current?.name, same: current === Coordinator.current() };
if (workerData?.grandchild) {
  parentPort.postMessage(report);
} else {
  const grandchild = new Worker(new URL(import.meta.url), { workerData: { grandchild: true } });
  const [theirs] = await once(grandchild, 'message');
  const attached = current && Coordinator.attach(current.handle) === current;
  parentPort.postMessage({ ...report, attached, grandchild: theirs.name });
}
