/** Resolves when the predicate holds: for what nobody tells of by an event. */
export async function eventually(predicate: () => boolean, withinMs = 30_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (!predicate()) {
    if (performance.now() > end)
      throw new Error(`It does not hold after ${withinMs} ms: ${String(predicate)}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
