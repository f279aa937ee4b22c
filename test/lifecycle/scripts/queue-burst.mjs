// The memory of a queue after a burst of items. argv: how many. Needs --expose-gc.
import { BoundedQueue } from 'allstop';
import { growth, memoryInUse } from './memory.mjs';
import { say } from './say.mjs';

const count = Number(process.argv[2]);
const queue = new BoundedQueue({ capacity: count });

for (let i = 0; i < count; ++i) queue.tryEnqueue(1);
const full = await memoryInUse();
while (queue.size > 1) await queue.dequeueMany(Math.min(1_000, queue.size - 1));
const oneLeft = await memoryInUse();
queue.tryDequeue();
const empty = await memoryInUse();
say('drained', { burst: growth(empty, full).rssMb, oneLeft: growth(empty, oneLeft).rssMb });
