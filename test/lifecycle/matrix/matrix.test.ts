// Every state of a worker crossed with every death, of the worker and of the whole process. The
// rules are at the top of cell.mjs. States and deaths are entries of states.mjs and deaths.mjs.

import { describe, expect, it } from 'vitest';
import { type Ended, startScript } from '../../support/run-script.ts';
import { processDeaths as deathsByName } from './deaths.mjs';
import { states } from './states.mjs';

type ProcessDeath = (typeof deathsByName)[string];
const processDeaths = Object.entries(deathsByName);

/** Only so that a process that hangs fails its test. A cell that hangs is found by the cells. */
const HANGS_MS = 170_000;

async function cells(args: string[], hangsMs = HANGS_MS): Promise<Ended> {
  const running = startScript('../matrix/cells', args);
  const limit = setTimeout(() => running.kill('SIGKILL'), hangsMs);
  const ended = await running.ended;
  clearTimeout(limit);
  return ended;
}

/** How many cells held. Fails with the cells that did not, and with those that never ended. */
function held(ended: Ended): number {
  const begun = ended.said.filter(({ event }) => event === 'begins').map(({ name }) => name);
  const results = ended.said.filter((said) => 'wrong' in said);
  const wrong = results.filter((said) => (said['wrong'] as string[]).length > 0);
  const unfinished = begun.filter((name) => results.every(({ event }) => event !== name));
  expect({ wrong, unfinished }, ended.stderr).toEqual({ wrong: [], unfinished: [] });
  expect(ended, ended.stderr).toMatchObject({ code: 0, signal: null, stderr: '' });
  return results.length;
}

async function endsProcess(state: string, name: string, death: ProcessDeath): Promise<void> {
  const { code = null, signal = null, stderr = /^$/ } = death;
  const ended = await cells(['process', state, name]);
  expect(ended, ended.stderr).toMatchObject({ code, signal, said: [{ event: 'in the state' }] });
  expect(ended.stderr).toMatch(stderr);
}

describe('a worker in some state that dies in some way', () => {
  it('keeps the rules, in every tenth cell', async () => {
    expect(held(await cells(['workers', '', '10']))).toBeGreaterThan(15);
  });

  it('keeps the rules, in all cells', { tags: 'long', timeout: 600_000 }, async () => {
    expect(held(await cells(['workers'], 590_000))).toBeGreaterThan(150);
  });
});

describe('workers in every state, whose process', () => {
  it.each(processDeaths)('%s: it ends so', { tags: 'long' }, (name, death) =>
    endsProcess('every state', name, death),
  );
});

/** Each death with one half of the states: the long tests cross all. */
describe.each([
  ['even states', 'calls process.exit(7)'],
  ['odd states', 'gets a SIGTERM that stops the coordinator'],
] as const)('workers in the %s, whose process', (half, name) => {
  it(`${name}: it ends so`, () => endsProcess(half, name, deathsByName[name] as ProcessDeath));
});

describe.each(Object.keys(states))('a worker %s, whose process', (state) => {
  it.each(processDeaths)('%s: it ends so', { tags: 'long' }, (name, death) =>
    endsProcess(state, name, death),
  );
});
