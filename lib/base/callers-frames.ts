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

/** A promise that rejects with `error`. */
export function rejection(error: unknown): Promise<never> {
  const isOurs = error instanceof Error && frameless.delete(error);
  return isOurs ? rejectAtCaller(error) : Promise.reject(error);
}

async function rejectAtCaller(error: Error): Promise<never> {
  // A promise that is resolved with this one awaits it two microtasks later.
  await undefined;
  await undefined;
  // Without this function, which is the first, and Node's own, which has called it.
  const frames = new Error().stack?.match(/\n {4}at .*/g)?.slice(1) ?? [];
  const callers = frames.filter((frame) => !frame.includes('node:internal'));
  if (callers.length > 0) error.stack = `${error.name}: ${error.message}${callers.join('')}`;
  throw error;
}
