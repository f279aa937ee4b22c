// The op of pipeline.mjs's QueueRunner: enqueues 1,000 numbers, one in each call.
let next = 0;

export default function enqueueNext(queue) {
  if (next === 1000) throw Object.assign(new Error('No more'), { name: 'OutOfRangeError' });
  return queue.enqueue({ number: next++ });
}
