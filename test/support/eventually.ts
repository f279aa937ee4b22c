/** Polls until the predicate holds, for states that no event announces. */
export async function eventually(predicate: () => boolean, withinMs = 60_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (!predicate()) {
    if (performance.now() > end)
      throw new Error(`It does not hold after ${withinMs} ms: ${String(predicate)}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
