/** What the simulation has found in the package: the shortest plans. None may go wrong again. */

const three = { servers: 3, replicas: 3 };
const node = { kind: 'node', name: 'n1', at: 0, slots: 2 };
const program = (at, ...works) => ({ kind: 'program', name: 'p1', at, works });

export const stories = {
  'a bucket of results is made when the servers that it needs are back': {
    ...three,
    steps: [
      node,
      program(0, { kind: 'keyed', at: 2_000, count: 4, everyMs: 200, keys: 4 }),
      { kind: 'cut', at: 1_000, from: 's1', to: 's2', ms: 15_000, isOneWay: false },
    ],
  },
};
