// The process that a worker of a cell has forked: says that it is there, and waits for the stop.
import { Coordinator } from 'allstop';

const coord = Coordinator.current();
process.send('here');
await coord.waitForStop();
await coord.join().catch(() => {}); // the error is the cell's: this process has it, too
