import { OutOfRangeError } from 'allstop';

let next = 0;

export default async function (queue) {
  if (next === 5) throw new OutOfRangeError('all read');
  await queue.enqueue(next++);
}
