// Runs cells of the matrix, and says of each what was wrong.
// argv: 'workers' [PART [NTH]]: the cells whose worker dies and whose process lives on; with PART
// only those whose names contain it, with NTH only every n-th. Or 'process' STATES DEATH: workers in
// these states, and the end of this process. STATES: the name of one, 'every state', or one half of
// them, 'odd states' or 'even states'.
import { say } from '../scripts/say.mjs';
import { startAnswering } from './answering.mjs';
import { allCells, enter, runCell } from './cell.mjs';
import { processDeaths } from './deaths.mjs';
import { states } from './states.mjs';

/** This many cells at once: while one waits for its worker to start, another goes on. */
const AT_ONCE = 4;

async function runWorkers(part = '', nth = '1') {
  const chosen = allCells()
    .filter(({ name }) => name.includes(part))
    .filter((_, at) => at % Number(nth) === 0);
  const { ask, worker } = startAnswering(new URL('bystander.mjs', import.meta.url));
  let failed = 0;
  const runSome = async () => {
    for (let cell = chosen.shift(); cell !== undefined; cell = chosen.shift()) {
      const { name, state, death } = cell;
      say('begins', { name });
      const startedAt = performance.now();
      const wrong = await runCell(state, death, ask).catch(({ message }) => [message]);
      if (wrong.length > 0) failed += 1;
      say(name, { wrong, ms: Math.round(performance.now() - startedAt) });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, runSome));
  await worker.terminate();
  say('the end', { failed });
  // A worker that hangs, if there is one, would hold up process.exit(), too.
  if (failed > 0) process.kill(process.pid, 'SIGKILL');
}

function namesOf(chosen) {
  const all = Object.keys(states);
  if (chosen === 'every state') return all;
  const half = ['even states', 'odd states'].indexOf(chosen);
  return half < 0 ? [chosen] : all.filter((_, at) => at % 2 === half);
}

async function runProcess(chosen, death) {
  const names = namesOf(chosen);
  const cells = await Promise.all(names.map(enter));
  say('in the state');
  await processDeaths[death].act(cells);
}

const [mode, ...args] = process.argv.slice(2);
await (mode === 'workers' ? runWorkers(...args) : runProcess(...args));
