import { currentCall } from 'allstop/cluster';

export const add = (a, b) => a + b;

export function dieOnce() {
  const { attempt } = currentCall();
  if (attempt === 1) process.exit(1);
  return attempt;
}

export function* numbers(first) {
  for (;;) yield first++;
}

export async function next(iterator) {
  return (await iterator.next()).value;
}

export function fail() {
  throw Object.assign(new TypeError('disk gone'), { code: 'E_DISK' });
}
