/** How fast the threads obeyed a stop, in a few lines for `explain()`. */

import type { StopLatency } from './lanes.ts';

/** The upper ends of the columns of the histogram, in milliseconds. */
const STEPS = [1, 10, 100, 1_000];

/** The number of threads that are named: the slowest ones. */
const NAMED = 3;

function histogram(times: readonly number[]): string {
  const columns = STEPS.map((step, index) => {
    const from = STEPS[index - 1] ?? Number.NEGATIVE_INFINITY;
    const count = times.filter((ms) => ms >= from && ms < step).length;
    return { label: `under ${step} ms`, count };
  });
  const longest = STEPS.at(-1) as number;
  columns.push({ label: 'longer', count: times.filter((ms) => ms >= longest).length });
  return columns
    .filter(({ count }) => count > 0)
    .map(({ label, count }) => `${label}: ${count}`)
    .join(', ');
}

function line(title: string, found: readonly { thread: string; ms: number }[]): string[] {
  if (found.length === 0) return [];
  const slowest = found
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, NAMED)
    .map(({ thread, ms }) => `${thread} ${ms.toFixed(1)} ms`);
  return [`  - ${title} ${histogram(found.map(({ ms }) => ms))} (slowest: ${slowest.join(', ')})`];
}

/** `latencies`: of the stop that the coordinator is stopped by. */
export function latencyLines(latencies: readonly StopLatency[]): string[] {
  const seen = latencies.flatMap(({ thread, seenMs: ms }) =>
    ms === undefined ? [] : { thread, ms },
  );
  const ended = latencies.flatMap(({ thread, endedMs: ms }) =>
    ms === undefined ? [] : { thread, ms },
  );
  const lines = [...line('saw the stop:', seen), ...line('ended:', ended)];
  return lines.length === 0 ? [] : ['Time since the stop, of its threads:', ...lines];
}
