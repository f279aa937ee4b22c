// Another thread, which uses the coordinator of a cell once the cell's worker is dead.
import { parentPort } from 'node:worker_threads';
import { Coordinator } from 'allstop';

const operations = {
  clear(coord) {
    const { id } = coord.stopRecord;
    coord.explain().toString();
    coord.clearStop();
    return id;
  },
  stop: (coord) => coord.requestStop(),
};

parentPort.on('message', ({ number, operation, handle }) => {
  const answer = operations[operation](Coordinator.attach(handle));
  // Where collections can be forced, the soak counts memory: coordinators of cells that are over
  // would else stay attached for as long as this thread has room for them.
  globalThis.gc?.();
  parentPort.postMessage({ number, answer });
});
