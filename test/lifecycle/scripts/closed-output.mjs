// A program whose standard output is read no more when it is told so by SIGUSR2, and which goes on
// writing. argv: what happens then, a 'signal' or 'nothing', 'before' or 'after' the first write;
// whether uncaught errors stop it ('uncaught').
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

const [what, when, uncaught] = process.argv.slice(2);
const signal = () => {
  if (what === 'signal') process.kill(process.pid, 'SIGINT');
};

await Coordinator.run(
  async (coord) => {
    coord.onStop(async () => {
      for (let i = 0; i < 5; ++i) {
        process.stdout.write('closing\n');
        await setTimeout(1);
      }
      writeSync(2, 'closed\n');
    });
    const told = once(process, 'SIGUSR2');
    say('ready');
    await Promise.race([told, setTimeout(40_000, undefined, { signal: coord.signal })]);
    if (when === 'before') signal();
    process.stdout.write('written\n');
    await setTimeout(20); // the error has come
    if (when === 'after') signal();
    await coord.waitForStop(5_000);
  },
  { stopOnSignals: ['SIGINT'], stopOnUncaught: uncaught === 'uncaught' },
);
process.stdout.write('bye\n');
