// Functions of a pool that hang. `words[0]` becomes 1 when one has begun.
import { execSync } from 'node:child_process';

function begin(words) {
  Atomics.store(words, 0, 1);
  Atomics.notify(words, 0);
}

export function spin(words) {
  begin(words);
  for (;;);
}

export function block(words) {
  begin(words);
  execSync('exec sleep 30');
}
