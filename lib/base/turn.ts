/** One turn of the event loop: everything runs that is ready now. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
