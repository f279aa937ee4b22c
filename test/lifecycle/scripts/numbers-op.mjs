// An op of pipeline.mjs: 1,000 numbers.
let next = 0;

export default function enqueueNext(queue) {
  if (next === 1000) throw Object.assign(new Error('No more'), { name: 'OutOfRangeError' });
  return queue.enqueue({ number: next++ });
}
