/** Statistics of the rounds of a row: medians, because other processes may disturb a round. */

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
 * For each round, the value of ours divided by the value of the peer. Both were measured right
 * after each other, so a disturbance of the whole round hardly changes the ratio.
 */
export function ratios(ours, peer) {
  return ours.map((value, round) => value / peer[round]);
}
