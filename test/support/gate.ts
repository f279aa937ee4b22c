/** A promise that the test opens: threads wait at it instead of sleeping. */
export type Gate = { readonly opened: Promise<void>; open(): void; fail(error: unknown): void };

export function gate(): Gate {
  let open!: () => void;
  let fail!: (error: unknown) => void;
  const opened = new Promise<void>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { opened, open, fail };
}

/** Lets all microtasks run, and one turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Whether the promise is still pending after everything that is ready has run. */
export async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  void promise.then(settle, settle);
  await turn();
  await turn(); // a join takes a turn of its own
  return !isSettled;
}
