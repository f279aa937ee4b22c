/** What happens in a simulation, by a seed: servers, nodes, programs with their works, and faults. */

import { randomOf } from './time.mjs';

const FAULTS_FROM_MS = 2_000;
const FAULTS_TO_MS = 40_000;
const WORKS_TO_MS = 45_000;

class Dice {
  #random;

  constructor(seed) {
    this.#random = randomOf(`plan/${seed}`);
  }

  /** A number from `least` to less than `most`. */
  number(least, most) {
    return least + Math.floor(this.#random() * (most - least));
  }

  one(list) {
    return list[this.number(0, list.length)];
  }

  is(chance) {
    return this.#random() < chance;
  }
}

const works = {
  calls: (dice) => ({
    ...dice.one([
      { count: dice.number(3, 40), ms: dice.one([1, 50, 500]) },
      { count: dice.number(3, 8), ms: 4_000 },
    ]),
    everyMs: dice.one([0, 100, 1_000]),
    options: dice.one([{}, {}, { priority: 'high' }, { priority: 'low' }]),
  }),
  map: (dice) => ({ count: dice.number(5, 60), ms: dice.one([1, 50, 500]) }),
  keyed: (dice) => ({
    count: dice.number(3, 30),
    everyMs: dice.one([0, 200, 1_000]),
    keys: dice.number(2, 10),
  }),
  deadlines: (dice) => ({
    count: dice.number(1, 8),
    everyMs: 300,
    ms: dice.one([10, 2_000]),
    timeoutMs: dice.one([1, 200, 2_500]),
  }),
  cancelled: (dice) => ({
    count: dice.number(1, 8),
    everyMs: 500,
    ms: dice.one([10, 3_000]),
    afterMs: dice.one([1, 500, 5_000]),
  }),
};

function workOf(dice) {
  const kind = dice.one(Object.keys(works));
  return { kind, at: dice.number(0, 20_000), ...works[kind](dice) };
}

const faults = {
  crash: (dice, { nodes }) => ({ name: dice.one(nodes), ms: dice.number(200, 8_000) }),
  freeze: (dice, { machines }) => ({ name: dice.one(machines), ms: dice.number(500, 20_000) }),
  cut: (dice, { machines, servers }) => ({
    from: dice.one(machines),
    to: dice.one(servers),
    isOneWay: dice.is(0.4),
    ms: dice.number(100, 25_000),
  }),
  slow: (dice, { machines, servers }) => ({
    from: dice.one(machines),
    to: dice.one(servers),
    by: dice.one([{ latencyMs: 300 }, { bytesPerMs: 2 }, { latencyMs: 50, bytesPerMs: 50 }]),
    ms: dice.number(1_000, 25_000),
  }),
  serverCrash: (dice, { servers }) => ({
    name: dice.one(servers),
    ms: dice.number(200, 15_000),
    wipes: servers.length === 1 && dice.is(0.2),
  }),
  jump: (dice, { machines }) => ({
    name: dice.one(machines),
    ms: dice.one([-1, 1]) * dice.number(1_000, 3_600_000),
  }),
  secret: (dice) => ({ secret: `secret ${dice.number(0, 1_000)}` }),
};

export function planOf(seed) {
  const dice = new Dice(seed);
  const count = dice.one([1, 1, 3]);
  const servers = Array.from({ length: count }, (_, at) => `s${at + 1}`);
  const nodes = Array.from({ length: dice.number(1, 5) }, (_, at) => `n${at + 1}`);
  const machines = [...nodes, 'p1'];
  const steps = nodes.map((name) => ({
    kind: 'node',
    name,
    at: dice.number(0, 3_000),
    slots: dice.number(1, 4),
  }));
  const own = Array.from({ length: dice.number(2, 6) }, () => workOf(dice));
  const hold = { kind: 'hold', at: 0, untilMs: WORKS_TO_MS };
  steps.push({ kind: 'program', name: 'p1', at: dice.number(0, 2_000), works: [...own, hold] });
  const around = { nodes, machines, servers };
  for (let left = dice.number(0, 6); left > 0; left -= 1) {
    const kind = dice.one(Object.keys(faults));
    const at = dice.number(FAULTS_FROM_MS, FAULTS_TO_MS);
    steps.push({ kind, at, ...faults[kind](dice, around) });
  }
  // Between servers: whoever is alone there is no leader.
  if (count === 3 && dice.is(0.7)) {
    const [from, ...others] = [...servers.slice(dice.number(0, 3)), ...servers].slice(0, 3);
    const at = dice.number(FAULTS_FROM_MS, FAULTS_TO_MS);
    const ms = dice.number(500, 20_000);
    for (const to of others) steps.push({ kind: 'cut', at, from, to, ms, isOneWay: false });
  }
  return { seed: String(seed), servers: count, replicas: count, steps };
}
