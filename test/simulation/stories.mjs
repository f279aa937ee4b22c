/** What the simulation has found in the package: the shortest plans. None may go wrong again. */

const three = { servers: 3, replicas: 3 };
const node = { kind: 'node', name: 'n1', at: 0, slots: 2 };
const program = (at, ...works) => ({ kind: 'program', name: 'p1', at, works });

/** Counts, saves, and then holds the cluster. */
const training = (name, at, count, everyMs) => ({
  kind: 'program',
  name,
  at,
  works: [
    { kind: 'training', at: 0, count, everyMs },
    { kind: 'hold', at: 0, untilMs: 60_000 },
  ],
});

export const stories = {
  'a bucket of results is made when the servers that it needs are back': {
    ...three,
    steps: [
      node,
      program(0, { kind: 'keyed', at: 2_000, count: 4, everyMs: 200, keys: 4 }),
      { kind: 'cut', at: 1_000, from: 's1', to: 's2', ms: 15_000, isOneWay: false },
    ],
  },
  'a run that hung in a save, and was taken over, says so and saves nothing': {
    servers: 1,
    replicas: 1,
    steps: [
      node,
      { kind: 'node', name: 'ps1', at: 0, job: 'ps', slots: 1 },
      training('p1', 0, 60, 300),
      { kind: 'slow', at: 3_000, from: 'p1', to: 's1', by: { latencyMs: 200 }, ms: 50_000 },
      { kind: 'freeze', name: 'p1', at: 7_500, ms: 14_000 },
      training('p2', 7_800, 12, 200),
      training('p3', 29_500, 15, 200),
    ],
  },
};
