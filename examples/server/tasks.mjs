// The functions that the pool runs.
import { currentCall } from 'allstop/cluster';

/** How many primes there are below `below`. */
export function countPrimes(below) {
  const task = currentCall();
  let count = 0;
  for (let n = 2; n < below; n++) {
    // The call's deadline is over, or the pool is closed: nobody waits for the result.
    if (n % 1_000 === 0 && task.shouldStop()) return undefined;
    if (isPrime(n)) count++;
  }
  return count;
}

function isPrime(n) {
  for (let divisor = 2; divisor * divisor <= n; divisor++) if (n % divisor === 0) return false;
  return true;
}
