/** Warnings that a program gets though it ends at once. */

/**
 * As `process.emitWarning`, which emits the warning in the next tick. A process that an error ends
 * before that tick, or `process.exit()`, emits it while it exits. This matters because the error
 * of a `join()` that nothing catches ends the process at once, and the warning says what that
 * error does not.
 */
export function warn(type: string, code: string, message: string, detail: string): void {
  const warning = Object.assign(new Error(message), { name: type, code, detail });
  let isEmitted = false;
  const emitNow = (): void => {
    if (!isEmitted) process.emit('warning', warning);
  };
  process.once('exit', emitNow);
  process.emitWarning(warning);
  process.nextTick(() => {
    isEmitted = true;
    process.off('exit', emitNow);
  });
}
