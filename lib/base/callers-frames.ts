/**
 * The stacks of errors that the package makes in a timer, or when a message comes: their own frames
 * say nothing about the program. They get those of the functions that await the call. V8 finds these
 * when something has failed; nothing is captured before.
 */

const frameless = new WeakSet<object>();

/** From now on `rejection` gives the error the frames of the functions that await it. */
export function withCallersFrames<E extends Error>(error: E): E {
  frameless.add(error);
  return error;
}

/** A promise that rejects with `thrown`. */
export function rejection(thrown: unknown): Promise<never> {
  const isOurs = thrown instanceof Error && frameless.delete(thrown);
  return isOurs ? rejectAtCaller(thrown) : Promise.reject(thrown as Error);
}

async function rejectAtCaller(thrown: Error): Promise<never> {
  // A promise that is resolved with this one awaits it two microtasks later.
  await Promise.resolve();
  await Promise.resolve();
  // Without this function, which is the first, and Node's own, which has called it.
  const frames = new Error().stack?.match(/\n {4}at .*/g)?.slice(1) ?? [];
  const callers = frames.filter((frame) => !frame.includes('node:internal'));
  if (callers.length > 0) thrown.stack = `${thrown.name}: ${thrown.message}${callers.join('')}`;
  throw thrown;
}
