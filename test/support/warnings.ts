/** The warnings of this process while `body` runs. */
export async function warningsDuring(body: () => Promise<unknown>): Promise<Error[]> {
  const warnings: Error[] = [];
  const listener = (warning: Error): void => void warnings.push(warning);
  const others = process.listeners('warning'); // Node's own writes each warning
  process.removeAllListeners('warning').on('warning', listener);
  await body();
  await new Promise(setImmediate);
  process.off('warning', listener);
  for (const other of others) process.on('warning', other);
  return warnings;
}
