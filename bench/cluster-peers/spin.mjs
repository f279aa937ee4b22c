/** The function of cluster-latency.mjs: computes for `us` microseconds. */
export function spin(us) {
  const end = performance.now() + us / 1_000;
  while (performance.now() < end);
}
