/** What the simulation has found in the package: the shortest plans. None may go wrong again. */

const one = { servers: 1, replicas: 1 };
const three = { servers: 3, replicas: 3 };
const node = { kind: 'node', name: 'n1', at: 0, slots: 2 };
const program = (at, ...works) => ({ kind: 'program', name: 'p1', at, works });

/** A second program with a key of its own, behind a leaf link, which takes the nodes. */
const rival = {
  kind: 'program',
  name: 'p2',
  at: 6_440,
  ms: 21_798,
  servers: ['l1'],
  domain: 'leaf',
  works: [{ kind: 'hold', at: 0, untilMs: 28_238 }],
};

/** Functions of 1 ms, of which nodes get some in advance, and functions that kill behind them. */
const brief = (at) => ({ kind: 'calls', name: 'brief', count: 60, everyMs: 0, ms: 1, at });
const shortAndDeadly = (at, retries) => [
  brief(at),
  { kind: 'poison', count: 3, everyMs: 0, retries, at },
];

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
  'a call that may be begun once is not sent in advance': {
    ...one,
    steps: [
      { kind: 'node', name: 'n2', at: 582, slots: 3 },
      { kind: 'node', name: 'n3', at: 2_429, slots: 2 },
      { kind: 'node', name: 'n4', at: 2_006, slots: 2 },
      program(826, ...shortAndDeadly(7_164, 0), { kind: 'hold', at: 0, untilMs: 45_000 }),
    ],
  },
  'what was sent in advance to a node that died counts as begun': {
    ...one,
    steps: [
      { kind: 'node', name: 'n1', at: 504, slots: 4 },
      { kind: 'node', name: 'n3', at: 1_059, slots: 3 },
      { kind: 'node', name: 'n4', at: 1_889, slots: 4 },
      program(93, brief(1_500), ...shortAndDeadly(4_882, 3), brief(4_882), {
        kind: 'hold',
        at: 0,
        untilMs: 45_000,
      }),
    ],
  },
  'a bucket of results is made when the servers that it needs are back': {
    ...three,
    steps: [
      node,
      program(0, { kind: 'keyed', at: 2_000, count: 4, everyMs: 200, keys: 4 }),
      { kind: 'cut', at: 1_000, from: 's1', to: 's2', ms: 15_000, isOneWay: false },
    ],
  },
  'a run that hung in a save, and was taken over, says so and saves nothing': {
    ...one,
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
  'a call whose workers go to another program, one by one, is no suspect': {
    ...one,
    domain: 'hub',
    leafs: [{ name: 'l1', domain: 'leaf' }],
    steps: [
      ...['n1', 'n2', 'n3', 'n4'].map((name, at) => ({ ...node, name, at: at * 400 })),
      rival,
      { ...program(669, { kind: 'hold', at: 0, untilMs: 58_238 }), domain: 'hub' },
    ],
  },
  'a call that may be begun once, whose workers go to another program, is not begun again': {
    ...one,
    domain: 'hub',
    leafs: [{ name: 'l1', domain: 'leaf' }],
    steps: [
      ...['n1', 'n2', 'n3', 'n4'].map((name, at) => ({ ...node, name, at: at * 400 })),
      rival,
      {
        ...program(
          669,
          { kind: 'calls', at: 3_000, count: 40, everyMs: 300, ms: 2_500, options: { retries: 0 } },
          { kind: 'hold', at: 0, untilMs: 58_238 },
        ),
        domain: 'hub',
      },
    ],
  },
  'what a worker had in advance that goes to another program counts as begun': {
    ...one,
    domain: 'hub',
    leafs: [{ name: 'l1', domain: 'leaf' }],
    steps: [
      { ...node, servers: ['l1'] },
      { ...node, name: 'n2', at: 12_000, servers: ['s1'] },
      { kind: 'cut', at: 6_300, from: 'l1', to: 's1', ms: 3_000, isOneWay: false },
      rival,
      {
        ...program(
          669,
          brief(1_500),
          { ...brief(5_500), count: 2_000 },
          { kind: 'hold', at: 0, untilMs: 58_238 },
        ),
        domain: 'hub',
      },
    ],
  },
  'a stop by a program whose machine has a name that is not ASCII': {
    ...one,
    steps: [
      node,
      { kind: 'node', name: 'n2', at: 7_000, slots: 1 },
      {
        ...program(
          500,
          { kind: 'stop', at: 5_000, isRemote: false },
          { kind: 'hold', at: 0, untilMs: 20_000 },
        ),
        name: 'büro',
      },
    ],
  },
  'the doctor sees what nobody can take behind what waits its turn': {
    ...one,
    steps: [
      { ...node, slots: 1 },
      { ...node, name: 'n2', at: 40_000, resources: { gpu: 1 } },
      program(
        500,
        { kind: 'calls', at: 2_000, count: 6, ms: 4_000, everyMs: 0 },
        { kind: 'needy', at: 2_500, count: 3, ms: 50, everyMs: 0, needs: 1 },
        { kind: 'hold', at: 0, untilMs: 60_000 },
      ),
      { kind: 'doctor', name: 'doc', at: 4_000, everyMs: 4_000, untilMs: 60_000 },
    ],
  },
  'a worker that is started again at once is not missed': {
    ...one,
    steps: [
      node,
      program(0, { kind: 'hold', at: 0, untilMs: 40_000 }),
      { kind: 'crash', name: 'n1', at: 10_000, ms: 200 },
      { kind: 'doctor', name: 'doc', at: 4_000, everyMs: 4_000, untilMs: 40_000 },
    ],
  },
  'a worker behind a cut, whose place another has taken, serves after the cut': {
    ...three,
    steps: [
      { ...node, servers: ['s3'] },
      { ...program(500, { kind: 'hold', at: 0, untilMs: 60_000 }), servers: ['s1'] },
      { kind: 'cut', at: 10_000, from: 's3', to: 's1', ms: 10_000, isOneWay: false },
      { kind: 'cut', at: 10_000, from: 's3', to: 's2', ms: 10_000, isOneWay: false },
      { kind: 'node', name: 'n2', at: 13_000, slots: 1, servers: ['s1'] },
      { kind: 'leave', name: 'n2', at: 24_000 },
    ],
  },
  'an addition of a call that runs again counts once': {
    ...one,
    steps: [
      node,
      { ...node, name: 'n2' },
      { kind: 'node', name: 'ps1', at: 0, job: 'ps', slots: 1 },
      program(0, { kind: 'adds', at: 500, count: 8, everyMs: 500, ms: 1_500 }),
      { kind: 'crash', name: 'n1', at: 3_000, ms: 1_000 },
    ],
  },
  'a worker that is started again at once, again and again, is not missed': {
    ...one,
    steps: [
      node,
      { ...node, name: 'n2' },
      program(0, { kind: 'hold', at: 0, untilMs: 60_000 }),
      ...[10_000, 18_000, 25_000, 25_300].map((at) => ({ kind: 'crash', name: 'n1', at, ms: 200 })),
      { kind: 'crash', name: 'n2', at: 25_100, ms: 9_000 },
      { kind: 'doctor', name: 'doc', at: 4_000, everyMs: 4_000, untilMs: 60_000 },
    ],
  },
  'a worker that dies again, with its place not known to be another’s, is not missed': {
    ...one,
    steps: [
      node,
      { ...node, name: 'n2' },
      program(0, { kind: 'hold', at: 0, untilMs: 70_000 }),
      { kind: 'crash', name: 'n1', at: 10_000, ms: 400 },
      { kind: 'crash', name: 'n1', at: 32_000, ms: 1_100 },
      { kind: 'crash', name: 'n1', at: 34_000, ms: 7_300 },
      { kind: 'doctor', name: 'doc', at: 4_000, everyMs: 4_000, untilMs: 70_000 },
    ],
  },
  'a worker that dies before it was ever heard again takes nobody’s place': {
    ...one,
    steps: [
      node,
      program(0, { kind: 'hold', at: 0, untilMs: 70_000 }),
      { kind: 'crash', name: 'n1', at: 10_000, ms: 3_700 },
      { kind: 'cut', at: 10_300, from: 'p1', to: 's1', ms: 21_600, isOneWay: true },
      { kind: 'crash', name: 'n1', at: 23_000, ms: 3_600 },
      { kind: 'doctor', name: 'doc', at: 4_000, everyMs: 3_000, untilMs: 70_000 },
    ],
  },
  'of two workers that may stand for a lost one, the older does': {
    ...one,
    steps: [
      { ...node, at: 2_222, slots: 1 },
      { kind: 'node', name: 'n4', at: 2_511, slots: 1 },
      { kind: 'serverCrash', at: 10_120, name: 's1', ms: 10_239, wipes: false },
      { kind: 'crash', at: 11_699, name: 'n4', ms: 573 },
      { kind: 'crash', at: 14_590, name: 'n1', ms: 5_026 },
      { kind: 'serverCrash', at: 27_804, name: 's1', ms: 4_461, wipes: false },
      { kind: 'crash', at: 37_222, name: 'n4', ms: 550 },
      program(1_928, { kind: 'hold', at: 0, untilMs: 68_046 }),
      { kind: 'doctor', name: 'doc', at: 4_000, everyMs: 6_483, untilMs: 68_046 },
    ],
  },
  'what a dead worker had sent arrives late, and is no sign of life': {
    ...three,
    seed: '300311',
    steps: [
      { kind: 'node', name: 'n3', at: 2_812, slots: 1 },
      { kind: 'cut', at: 25_016, from: 'n3', to: 's3', isOneWay: false, ms: 21_716 },
      { kind: 'crash', at: 39_236, name: 'n3', ms: 2_295 },
      program(1_009, { kind: 'calls', at: 17_538, count: 6, ms: 4_000, everyMs: 1_000 }),
      { kind: 'doctor', name: 'doc', at: 4_000, everyMs: 4_417, untilMs: 76_732 },
    ],
  },
};
