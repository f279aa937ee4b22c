// What a queue does, with NODE_DEBUG=allstop.
import { setImmediate } from 'node:timers/promises';
import { BoundedQueue, Coordinator } from 'allstop';

const coordinator = new Coordinator({ name: 'mill' });
const queue = new BoundedQueue({ capacity: 1, name: 'grain', coordinator });
await queue.enqueue('rye');
const late = queue.enqueue('oats');
await queue.dequeue();
await late;
for (let turns = 0; turns < 2; turns++) await setImmediate(); // the line comes in a later turn
queue.close();
queue.close();
