/** What is said of a row's rounds. Medians, since a round may have been disturbed. */

export function quantile(values, q) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const below = sorted[Math.floor(at)];
  return below + (sorted[Math.ceil(at)] - below) * (at - Math.floor(at));
}

export function median(values) {
  return quantile(values, 0.5);
}

/** The median and the two quartiles. */
export function summary(values) {
  return { low: quantile(values, 0.25), median: median(values), high: quantile(values, 0.75) };
}

/**
 * Of each round, ours by the peer's: both were measured right after each other, so
 * what disturbs a round as a whole disturbs the ratio least.
 */
export function ratios(ours, peer) {
  return ours.map((value, round) => value / peer[round]);
}
