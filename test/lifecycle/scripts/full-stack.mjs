// Calls the package where the stack is full, and ever less so. Usage: full-stack.mjs STORY

import { BoundedQueue, Coordinator } from 'allstop';
import { say } from './say.mjs';

/** More than the levels at which nothing can be called, whether it has been compiled or not. */
const LEVELS = 1_000;

/** Calls `body` at the deepest level of a recursion that has overflowed the stack, and above it. */
function atFullStack(body) {
  let left = LEVELS;
  const dive = () => {
    try {
      dive();
    } catch (error) {
      if (left-- > 0) {
        try {
          body();
        } catch {}
        throw error;
      }
    }
  };
  try {
    dive();
  } catch {}
}

/** The names of the errors of those that reject. */
async function errorsOf(promises) {
  const outcomes = await Promise.allSettled(promises);
  const failed = outcomes.filter(({ status }) => status === 'rejected');
  return [...new Set(failed.map(({ reason }) => reason.name))];
}

const stories = {
  async dequeue() {
    const queue = new BoundedQueue({ capacity: 1 });
    const waits = [];
    atFullStack(() => waits.push(queue.dequeue()));
    const errors = errorsOf(waits);
    const last = queue.dequeue(); // behind those that wait
    const feed = async () => {
      while (!queue.closed) await queue.enqueue('item');
    };
    const fed = feed().catch(() => {});
    await last;
    queue.close({ cancelPendingEnqueues: true });
    await fed;
    return { errors: await errors };
  },

  async enqueue() {
    const queue = new BoundedQueue({ capacity: 1 });
    await queue.enqueue('first');
    const waits = [];
    let count = 0;
    atFullStack(() => waits.push(queue.enqueue((count += 1))));
    const errors = errorsOf(waits);
    queue.close();
    const items = [];
    for await (const item of queue) items.push(item);
    const entered = (await Promise.allSettled(waits)).filter(
      ({ status }) => status === 'fulfilled',
    );
    return { errors: await errors, lost: entered.length + 1 - new Set(items).size };
  },

  async hook() {
    // A join that is not told that the hooks have ended waits for ever.
    const coord = new Coordinator({ stopGracePeriodMs: Infinity });
    let added = 0;
    let ran = 0;
    const hook = () => {
      ran += 1;
    };
    atFullStack(() => {
      coord.onStop(hook);
      added += 1;
    });
    coord.requestStop();
    await coord.join();
    return { errors: [], lost: added - ran };
  },
};

say('ended', await stories[process.argv[2]]());
