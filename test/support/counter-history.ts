/** What clients of a counter saw: each `add` adds 1. Times are of one clock. */
export type CounterEvent =
  | { kind: 'add'; begin: number; end: number }
  | { kind: 'read'; begin: number; end: number; value: number };

/**
 * Why the history is not that of one counter, whose operations happen one after the other, each
 * between its begin and its end: a read saw less than had been added before it began, or more than
 * had begun before it ended, or less than a read that ended before. Empty if all is well.
 */
export function faultsOf(history: readonly CounterEvent[]): string[] {
  const adds = history.filter(({ kind }) => kind === 'add');
  const reads = history.filter((event) => event.kind === 'read');
  return reads.flatMap(({ begin, end, value }) => {
    const least = adds.filter((add) => add.end < begin).length;
    const most = adds.filter((add) => add.begin < end).length;
    const before = Math.max(
      0,
      ...reads.filter((read) => read.end < begin).map((read) => read.value),
    );
    if (value < least) return [`a read saw ${value}, and ${least} had been added`];
    if (value > most) return [`a read saw ${value}, and only ${most} had begun`];
    if (value < before) return [`a read saw ${value} after another had seen ${before}`];
    return [];
  });
}
