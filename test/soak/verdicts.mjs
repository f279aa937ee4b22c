// What a soak must show. The tolerances are stated here and repeated in the report.

/** The time in which caches fill: 2 minutes, or this part of a shorter run. */
const WARM_UP_S = 120;
const WARM_UP_PART = 0.4;

/** A slope over less time than this is noise, and is not judged. */
const SHORTEST_SLOPE_S = 60;

/** Growth that is not yet a leak: of the last tenth over the first tenth after the warm-up. */
const TOLERANCES = {
  heapMb: { growth: 4, perMinute: 1.5 },
  externalMb: { growth: 4, perMinute: 1.5 },
  rssMb: { growth: 48, perMinute: 12 },
};

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** The median of the slopes between all pairs (Theil and Sen), a minute. */
function slope(points) {
  const slopes = [];
  const step = Math.max(1, Math.floor(points.length / 200));
  const some = points.filter((_, at) => at % step === 0);
  for (const [at, [x, y]] of some.entries()) {
    for (const [laterX, laterY] of some.slice(at + 1)) slopes.push((laterY - y) / (laterX - x));
  }
  return 60 * median(slopes);
}

export function warmUp(samples) {
  return Math.min(WARM_UP_S, WARM_UP_PART * samples.at(-1).s);
}

/** @returns {{ what: string, ok: boolean, detail: string }[]} */
export function verdicts({ samples, before, after, counts, failures }, { sanitized }) {
  const rows = [];
  const say = (what, ok, detail) => rows.push({ what, ok, detail });
  const warm = samples.filter(({ s }) => s >= warmUp(samples));
  const part = Math.max(3, Math.ceil(warm.length / 10));
  for (const [key, { growth, perMinute }] of Object.entries(TOLERANCES)) {
    if (sanitized && key === 'rssMb') continue;
    const at = (some) => median(some.map((each) => each[key]));
    const first = at(warm.slice(0, part));
    const last = at(warm.slice(-part));
    say(
      `${key} at the end is what it was after the warm-up`,
      last - first <= growth,
      `${first.toFixed(1)} -> ${last.toFixed(1)} MB, at most ${growth} MB more`,
    );
    if (samples.at(-1).s - warm[0].s < SHORTEST_SLOPE_S) continue;
    const rise = slope(warm.map((each) => [each.s, each[key]]));
    say(
      `${key} does not rise`,
      rise <= perMinute,
      `${rise.toFixed(2)} MB a minute, at most ${perMinute}`,
    );
  }
  for (const key of ['descriptors', 'threads', 'resources']) {
    say(
      `${key}: none more once everything is closed`,
      after[key] <= before[key],
      `${before[key]} after a rehearsal, ${after[key]} at the end`,
    );
  }
  for (const [name, { rounds, done }] of Object.entries(counts)) {
    const failed = failures.filter((failure) => failure.name === name);
    say(
      `${name}: nothing lost, nothing wrong`,
      failed.length === 0 && rounds > 0,
      failed[0]?.error ?? `${rounds} rounds, ${done} done`,
    );
  }
  return rows;
}
