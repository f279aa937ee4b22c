// The functions that the clusters of the soak run.
import { currentCall } from 'allstop/cluster';

export function square(n) {
  return n * n;
}

/** Ends its worker at the first attempt. */
export function dieOnce() {
  if (currentCall().attempt === 1) process.exit(3);
  return 'survived';
}
