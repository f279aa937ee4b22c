/** What happens in a simulation, by a seed: servers, nodes, programs with their works, and faults. */

import { randomOf } from './time.mjs';

const FAULTS_FROM_MS = 2_000;
const FAULTS_TO_MS = 40_000;
const WORKS_TO_MS = 45_000;
/** How long programs hold the cluster after the last fault: by then all has to be as it was. */
const AFTER_MS = 30_000;

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

const someWork = {
  calls: (dice) => ({
    ...dice.one([
      { count: dice.number(3, 40), ms: dice.one([1, 50, 500]) },
      { count: dice.number(3, 8), ms: 4_000 },
    ]),
    everyMs: dice.one([0, 100, 1_000]),
    options: dice.one([{}, { retries: 0 }, { priority: 'high' }, { priority: 'low' }]),
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
  const kind = dice.one(Object.keys(someWork));
  return { kind, at: dice.number(0, 20_000), ...someWork[kind](dice) };
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
  full: (dice) => ({ ms: dice.number(500, 15_000) }),
};

/** Adds faults to the plan, of these kinds. */
function storm({ dice, around, steps }, most, kinds = Object.keys(faults)) {
  for (let left = dice.number(0, most + 1); left > 0; left -= 1) {
    const kind = dice.one(kinds);
    const at = dice.number(FAULTS_FROM_MS, FAULTS_TO_MS);
    steps.push({ kind, at, ...faults[kind](dice, around) });
  }
}

/** Parts one server of three from the others: alone it is no leader. */
function part({ dice, around: { servers }, steps }, at, ms) {
  const first = dice.number(0, servers.length);
  const [from, ...others] = servers.map((_, place) => servers[(first + place) % servers.length]);
  for (const to of others) steps.push({ kind: 'cut', at, from, to, ms, isOneWay: false });
}

const someTime = (dice) => dice.number(FAULTS_FROM_MS, FAULTS_TO_MS);

/** What a plan is about, besides works that go on. */
const acts = {
  storm(scene) {
    storm(scene, 6);
    const { dice, around } = scene;
    if (around.servers.length === 3 && dice.is(0.7)) {
      part(scene, someTime(dice), dice.number(500, 20_000));
    }
  },

  /** Another program takes the cluster, perhaps while the servers do not reach each other. */
  rival(scene) {
    const { dice, around, steps } = scene;
    const at = someTime(dice);
    const work = { ...workOf(dice), at: dice.number(0, 5_000) };
    const onHeld = dice.one(['takeOver', 'takeOver', 'takeOver', 'standBy', 'refuse']);
    const own = [work, { kind: 'hold', at: 0 }];
    steps.push({ kind: 'program', name: 'p2', at, onHeld, works: own });
    around.machines.push('p2');
    const [first, ...others] = around.servers;
    if (others.length > 0) {
      const [from, ms] = [at - dice.number(100, 2_000), dice.number(500, 8_000)];
      if (dice.is(0.5)) part(scene, from, ms);
      else {
        // The rival begins where most servers are, and all others know one server alone.
        for (const step of steps) step.servers = step.name === 'p2' ? others : [first];
        scene.isApart = true;
        for (const to of others) steps.push({ kind: 'cut', at: from, from: first, to, ms });
      }
    }
    storm(scene, 2);
  },

  /** Functions that kill the process of their worker, beside others. */
  poison({ dice, around, steps, works: own }) {
    for (const step of steps) if (step.kind === 'node') step.slots = dice.number(2, 5);
    const at = dice.number(2_000, 10_000);
    const count = dice.number(1, 4);
    // So many, and so short, that nodes get some in advance, and what kills among them.
    const short = { kind: 'calls', name: 'brief', count: 60, everyMs: 0, ms: 1 };
    const [isAmong, retries] = [dice.is(0.6), dice.one([0, 1, 3, 3])];
    if (isAmong) own.push({ ...short, at: 1_500 }, { ...short, at });
    own.push({ kind: 'poison', at, count, everyMs: isAmong ? 0 : 500, retries });
    if (isAmong) own.push({ ...short, at });
    own.push({ kind: 'calls', at: 1_000, count: 30, everyMs: 100, ms: dice.number(500, 2_000) });
    around.nodes.length = 0;
  },

  /** A program that counts in a variable, and saves it, is killed, or taken over, and goes on. */
  training(scene) {
    const { dice, around, steps, works: own } = scene;
    steps.push({ kind: 'node', name: 'ps1', at: 0, job: 'ps', slots: 1 });
    const work = {
      kind: 'training',
      at: 0,
      count: dice.number(10, 60),
      everyMs: dice.number(50, 800),
    };
    own.push(work, {
      kind: 'adds',
      at: 1_000,
      count: dice.number(5, 30),
      everyMs: dice.one([50, 1_000]),
      ms: dice.one([20, 1_500]),
    });
    // While functions that have added go on.
    if (dice.is(0.5)) {
      const at = dice.number(2_500, 8_000);
      steps.push({ kind: 'crash', name: dice.one(around.nodes), at, ms: dice.number(200, 8_000) });
    }
    if (dice.is(0.5)) {
      const works = [{ ...work }, { kind: 'hold', at: 0 }];
      steps.push({ kind: 'program', name: 'p2', at: someTime(dice), works });
      around.machines.push('p2');
      const ms = dice.number(2_000, 12_000);
      if (dice.is(0.7)) steps.push({ kind: 'freeze', name: 'p1', at: steps.at(-1).at - 500, ms });
    } else around.nodes.push('p1');
    storm(scene, 3, ['crash', 'freeze', 'slow', 'jump']);
  },

  /** Nodes leave in order, and new ones come; perhaps there is none for a while. */
  scale({ dice, around: { nodes }, steps, works: own }) {
    own.push({ kind: 'calls', at: 500, count: 60, everyMs: 500, ms: 100 });
    if (dice.is(0.5)) own.push({ kind: 'patient', at: 1_000, count: 12, everyMs: 900, ms: 6_000 });
    const leaving = dice.is(0.4) ? nodes : nodes.slice(0, dice.number(1, nodes.length + 1));
    const at = dice.number(5_000, 15_000);
    for (const name of leaving) steps.push({ kind: 'leave', name, at: at + dice.number(0, 3_000) });
    for (const [no] of leaving.entries()) {
      const slots = dice.number(1, 4);
      steps.push({ kind: 'node', name: `m${no}`, at: at + dice.number(1_000, 25_000), slots });
    }
  },

  /** A new version of the module, with one more function, beside the old one. */
  deploy({ dice, around: { nodes }, steps, works: own }) {
    const at = dice.number(4_000, 10_000);
    steps.push({ kind: 'node', name: 'later', at, slots: 2, isLater: true });
    if (dice.is(0.5)) steps.push({ kind: 'leave', name: dice.one(nodes), at: at + 3_000 });
    const work = { kind: 'calls', at: at + 5_000, count: 8, everyMs: 300, ms: 50 };
    own.push({ ...work, name: 'renamed' });
  },

  /** The servers advertise addresses that nobody reaches, and are started again. */
  advertised({ dice, around: { servers }, steps }) {
    const others = Array.from({ length: dice.number(2, 7) }, (_, at) => `10.9.9.${at}:4222`);
    steps.push({ kind: 'advertise', at: 0, addresses: others });
    for (let left = dice.number(1, 4); left > 0; left -= 1) {
      const ms = dice.number(200, 2_000);
      steps.push({ kind: 'serverCrash', name: dice.one(servers), at: someTime(dice), ms });
    }
  },

  /** The cluster is stopped, by the program, by functions, or by both at once. */
  stop(scene) {
    const { dice, works: own } = scene;
    const at = someTime(dice);
    for (let left = dice.one([1, 1, 2, 3]); left > 0; left -= 1) {
      own.push({ kind: 'stop', at: at + dice.one([0, 1, 300]), isRemote: dice.is(0.7) });
    }
    storm(scene, 3, ['crash', 'freeze', 'cut', 'slow', 'serverCrash']);
  },

  /** Some nodes, and perhaps the program, are behind a leaf link. */
  edge(scene) {
    const { dice, around, steps } = scene;
    scene.leafs = [{ name: 'l1', domain: dice.is(0.5) ? 'leaf' : undefined }];
    const isFar = dice.is(0.4);
    // A leaf that has no JetStream leads to one: only a name of that one tells it from none at all.
    const isNamed = isFar || scene.leafs[0].domain !== undefined || dice.is(0.5);
    scene.domain = isNamed ? 'hub' : undefined;
    for (const step of steps) {
      if (step.kind === 'node' && dice.is(0.6)) step.servers = ['l1'];
    }
    scene.p1 = { domain: scene.domain, ...(isFar && { servers: ['l1'] }) };
    if (dice.is(0.6)) {
      const ms = dice.number(200, 20_000);
      steps.push({ kind: 'cut', at: someTime(dice), from: 'l1', to: 's1', ms });
    }
    storm(scene, 3, ['crash', 'freeze', 'slow', 'serverCrash']);
    around.servers.push('l1');
    storm(scene, 2, ['serverCrash']);
  },

  /** Two programs of one name, each with a JetStream of its own; the older one lives longer. */
  domains(scene) {
    const { dice, steps } = scene;
    scene.domain = 'hub';
    scene.leafs = [{ name: 'l1', domain: 'leaf' }];
    scene.p1 = { domain: 'hub' };
    for (const step of steps) if (dice.is(0.4)) step.servers = ['l1'];
    const at = dice.number(4_000, 15_000);
    const ms = dice.number(18_000, 30_000);
    const own = [{ kind: 'hold', at: 0, lastsMs: ms }];
    const p2 = { kind: 'program', name: 'p2', servers: ['l1'], domain: 'leaf', replicas: 1 };
    steps.push({ ...p2, at, ms, works: own });
    if (dice.is(0.5)) {
      const cut = { kind: 'cut', at: at - dice.number(0, 400), from: 'l1', to: 's1' };
      steps.push({ ...cut, ms: dice.number(500, 10_000) });
    }
  },

  /** Values that are larger than what may be on its way at once, over links of which some are slow. */
  bulk(scene) {
    const { dice, around, steps, works: own } = scene;
    const bytes = dice.one([100_000, 700_000, 3_000_000]);
    const count = dice.number(3, Math.ceil(Math.min(40, 20_000_000 / bytes)));
    const work = { count, everyMs: dice.one([0, 100]), ms: dice.one([1, 500]), bytes };
    own.push({ kind: 'bulk', at: dice.number(500, 9_000), ...work });
    for (let left = dice.number(0, 4); left > 0; left -= 1) {
      const [from, to] = [dice.one(around.machines), dice.one(around.servers)];
      const ms = dice.number(1_000, 20_000);
      steps.push({ kind: 'slow', at: someTime(dice), from, to, by: { bytesPerMs: 200 }, ms });
    }
    storm(scene, 2, ['crash', 'freeze', 'cut', 'serverCrash']);
  },

  /** Some nodes have a resource, or none has. */
  resources(scene) {
    const { dice, steps, works: own } = scene;
    const hasNone = dice.is(0.3);
    for (const step of steps) {
      if (step.kind === 'node' && !hasNone && dice.is(0.6)) {
        step.resources = { gpu: dice.number(1, 4) };
      }
    }
    const most = Math.max(...steps.map(({ resources }) => resources?.gpu ?? 0));
    if (most === 0) {
      const slots = dice.number(1, 3);
      steps.push({ kind: 'node', name: 'late', at: 40_000, slots, resources: { gpu: 2 } });
    }
    const work = { count: dice.number(5, 20), ms: dice.one([50, 500, 3_000]) };
    for (const needs of [1, Math.max(1, most)]) {
      own.push({ kind: 'needy', at: dice.number(500, 8_000), everyMs: 100, needs, ...work });
    }
    if (most > 0) storm(scene, 3);
  },

  /** Each worker has a data set. */
  datasets(scene) {
    const { dice, works: own } = scene;
    for (let left = dice.number(1, 3); left > 0; left -= 1) {
      const [count, items] = [dice.number(10, 60), dice.one([3, 20, 1_000])];
      own.push({ kind: 'draws', at: dice.number(500, 9_000), count, everyMs: 200, items });
    }
    storm(scene, 3, ['crash', 'freeze', 'cut', 'slow', 'serverCrash', 'jump']);
  },

  /** Functions that are scheduled, and joined; one may fail. */
  schedules(scene) {
    const { dice, works: own } = scene;
    const count = dice.number(5, 60);
    const failing = dice.is(0.5) ? dice.number(0, count) : undefined;
    const work = { count, everyMs: dice.one([0, 50, 400]), ms: dice.one([1, 100, 800]), failing };
    own.push({ kind: 'schedules', at: dice.number(500, 9_000), ...work });
    storm(scene, 4);
  },
};

const USUAL = ['storm', 'storm', 'storm'];

export function planOf(seed) {
  const dice = new Dice(seed);
  const count = dice.one([1, 1, 3]);
  const servers = Array.from({ length: count }, (_, at) => `s${at + 1}`);
  const nodes = Array.from({ length: dice.number(1, 5) }, (_, at) => `n${at + 1}`);
  const steps = nodes.map((name) => ({
    kind: 'node',
    name,
    at: dice.number(0, 3_000),
    slots: dice.number(1, 4),
  }));
  const own = Array.from({ length: dice.number(1, 5) }, () => workOf(dice));
  const around = { nodes, machines: [...nodes, 'p1'], servers };
  const act = dice.one([...Object.keys(acts), ...USUAL]);
  const scene = { dice, around, steps, works: own, p1: {} };
  acts[act](scene);
  own.push({ kind: 'hold', at: 0 });
  const p1 = { kind: 'program', name: 'p1', at: dice.number(0, 2_000), works: own, ...scene.p1 };
  steps.push(scene.isApart ? { ...p1, servers: servers.slice(0, 1) } : p1);
  const calm = Math.max(...steps.map(({ kind, at, ms = 0 }) => (kind === 'jump' ? at : at + ms)));
  const untilMs = Math.max(WORKS_TO_MS, calm + AFTER_MS);
  for (const { at, works: all = [] } of steps) {
    for (const work of all) {
      if (work.kind === 'hold') work.untilMs = work.lastsMs ? at + work.lastsMs : untilMs;
    }
  }
  steps.push({
    kind: 'doctor',
    name: 'doc',
    at: 4_000,
    everyMs: dice.number(3_000, 9_000),
    untilMs,
  });
  const { leafs, domain } = scene;
  return { seed: String(seed), act, servers: count, replicas: count, leafs, domain, steps };
}
