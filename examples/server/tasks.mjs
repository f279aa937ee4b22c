// The functions that the pool runs.
import { currentCall } from 'allstop/cluster';

/** How many primes there are below `below`. */
export function countPrimes(below) {
  const call = currentCall();
  let primes = 0;
  for (let n = 2; n < below; n++) {
    if (n % 1_000 === 0 && call.shouldStop()) return undefined; // nobody waits for the result
    let divisor = 2;
    while (divisor * divisor <= n && n % divisor !== 0) divisor++;
    if (divisor * divisor > n) primes++;
  }
  return { primes };
}
