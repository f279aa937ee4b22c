/** The judges of the simulation: they accept a right history, and each rejects what it is there for. */

import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Event, judge, judges, type Plan } from './judges.mjs';

const event = (at: number, place: string, what: string, facts: object = {}): Event => ({
  at,
  place,
  what,
  ...facts,
});

const program = (name: string, at: number) => ({ kind: 'program', name, at });
const node = { kind: 'node', name: 'n1', at: 0, resources: { gpu: 2 } };
const alone: Plan = { steps: [node, program('p1', 0)] };
/** Each has a JetStream of its own; they live side by side from 9 s to 39 s. */
const apart: Plan = {
  steps: [
    node,
    { ...program('p1', 0), domain: 'hub' },
    { ...program('p2', 9_000), domain: 'leaf', ms: 30_000 },
  ],
};
const rivals: Plan = { steps: [node, program('p1', 0), program('p2', 9_000)] };

const call = (
  id: string,
  at: number,
  kind: string,
  facts: object = {},
  settled?: object,
): Event[] => {
  const place = id.split('/')[0] as string;
  return [
    event(at, place, 'calls', { id, kind, ...facts }),
    event(at + 1, 'n1/worker:0', 'begins', { id, attempt: 1 }),
    event(at + 9, 'n1/worker:0', 'ends', { id: (facts as { key?: string }).key ?? id }),
    ...(settled === undefined ? [] : [event(at + 10, place, 'settles', { id, ...settled })]),
  ];
};

/** What is there at the end. */
const over = (facts: object = {}): object => ({
  clients: [2],
  bytes: { p1: 3_000, n1: 2_000 },
  kept: [
    { stream: 'KV_allstop_c', messages: 1, consumers: 0 },
    { stream: 'KV_results', messages: 1, consumers: 0 },
    { stream: 'OBJ_checkpoints', messages: 2, consumers: 0 },
  ],
  ...facts,
});

/** All that goes right. `more`: what happens in the middle of it. */
const history = (...more: Event[]): Event[] => [
  event(0, 'world', 'process', { name: 'n1' }),
  event(0, 'world', 'process', { name: 'p1' }),
  event(5, 'n1', 'serving'),
  ...call('p1/1', 10, 'run', { is: 4 }, { how: 'ok', value: 4 }),
  ...call('p1/2', 30, 'run', { is: 9, isCancelled: true }, { how: 'AbortError' }),
  ...call('p1/3', 40, 'poison', {}, { how: 'UnavailableError', message: 'ran 4 times' }),
  ...call('p1/4', 60, 'keyed', { is: 1, key: 'k' }, { how: 'ok', value: 1 }),
  event(70, 'p1', 'maps', { id: 'p1/m', count: 2 }),
  event(71, 'p1', 'item', { id: 'p1/m', value: 0 }),
  event(72, 'p1', 'item', { id: 'p1/m', value: 1 }),
  event(73, 'p1', 'mapped', { id: 'p1/m', how: 'ok' }),
  ...call('p1/5', 80, 'add', {}, { how: 'ok' }),
  event(100, 'p1', 'reads', { id: 'p1/r' }),
  event(101, 'p1', 'read', { id: 'p1/r', value: 1 }),
  event(110, 'p1', 'restores'),
  event(111, 'p1', 'restored', { save: 'none', done: 0, value: 0 }),
  event(120, 'p1', 'saves', { save: 's1', done: 3 }),
  event(121, 'p1', 'saved', { save: 's1' }),
  event(122, 'world', 'stored', { by: 'p1', subject: '$KV.allstop_c.run' }),
  ...call('p1/7', 130, 'scheduled', { is: 4 }, { how: 'ok', value: 4 }),
  ...call('p1/8', 130, 'failing', { is: 4 }, { how: 'RangeError', message: 'p1/8' }),
  event(141, 'p1', 'throws', { how: 'RangeError', message: 'p1/8' }),
  event(142, 'p1', 'joins'),
  event(150, 'n1/t1', 'makes', { made: 'd1' }),
  event(151, 'n1/t2', 'draws', { made: 'd1', number: 0 }),
  event(152, 'n1/t3', 'draws', { made: 'd1', number: 1 }),
  event(160, 'n1/t1', 'begins', { id: 'g1', attempt: 1, needs: 1 }),
  event(160, 'n1/t2', 'begins', { id: 'g2', attempt: 1, needs: 1 }),
  event(170, 'n1/t1', 'frees', { id: 'g1' }),
  event(171, 'world', 'thread ends', { name: 'n1/t2' }),
  event(172, 'n1/t1', 'begins', { id: 'g3', attempt: 1, needs: 2 }),
  event(173, 'n1/t1', 'frees', { id: 'g3' }),
  ...more,
  event(10_000, 'world', 'calm'),
  event(40_000, 'doc', 'doctor', { from: 39_900, problems: [] }),
  ...call('p1/6', 50_000, 'run', { is: 4 }, { how: 'ok', value: 4 }),
  event(60_000, 'p1', 'keeps', { held: {} }),
  event(60_000, 'p1', 'is done'),
  event(60_005, 'n1/t1', 'returns', { made: 'd1' }),
  event(60_006, 'n1', 'session-over'),
  event(60_010, 'world', 'exits', { name: 'p1' }),
  event(60_020, 'world', 'over', over()),
];

const changed = (what: string, id: string, facts: object): Event[] =>
  history().map((each) => (each.what === what && each['id'] === id ? { ...each, ...facts } : each));
const without = (what: string, id: string): Event[] =>
  history().filter((each) => each.what !== what || each['id'] !== id);

const lost = { how: 'FailedPreconditionError', message: 'taken over' };
const crash = { kind: 'serverCrash', name: 's1', at: 1_000, ms: 500 };
/** A program that is stopped, with what it and the threads of its workers know of that. */
const stopped = (everywhere: object, of = 'p1/s', thrown = of): Event[] =>
  history(
    event(200, 'p1', 'stops', { id: 'p1/s' }),
    event(9_000, 'p1', 'stopped', { record: 'r', of, everywhere }),
    event(9_001, 'p1', 'stop thrown', { how: 'RangeError', message: thrown }),
  );
const warning = (at: number, place: string): Event =>
  event(at, place, 'warning', { code: 'ALLSTOP_TWO_COORDINATORS' });
const two = event(26_000, 'doc', 'doctor', { from: 25_900, problems: ['coordinators c: 2'] });
const rival = (at: number): Event[] => call('p2/1', at, 'run', { is: 4 }, { how: 'ok', value: 4 });

const wrong: Record<string, [what: string, history: Event[], plan?: Plan][]> = {
  settlesOnce: [
    [
      'a call that settles twice',
      history(event(200, 'p1', 'settles', { id: 'p1/1', how: 'ok', value: 4 })),
    ],
    ['a call that never settles', without('settles', 'p1/1')],
  ],
  isRight: [
    ['a wrong result', changed('settles', 'p1/1', { value: 5 })],
    ['no result', changed('settles', 'p1/1', { value: undefined })],
    ['the result of another key', changed('settles', 'p1/4', { value: 2 })],
  ],
  mapsInOrder: [
    ['a missing item', without('item', 'p1/m')],
    ['an item twice', history(event(200, 'p1', 'item', { id: 'p1/m', value: 1 }))],
    ['a wrong item', changed('item', 'p1/m', { value: 7 })],
  ],
  sparesInnocents: [
    [
      'an innocent that fails',
      changed('settles', 'p1/1', { how: 'UnavailableError', message: 'died' }),
    ],
    ['an abort that nobody asked for', changed('settles', 'p1/1', { how: 'AbortError' })],
    [
      'a deadline that nobody has set',
      changed('settles', 'p1/1', { how: 'DeadlineExceededError' }),
    ],
    ['a takeover without a rival', changed('settles', 'p1/1', lost)],
    ['an unknown error', changed('settles', 'p1/1', { how: 'TypeError' })],
    ['a poison that succeeds', changed('settles', 'p1/3', { how: 'ok', value: undefined })],
    ['a map that fails', changed('mapped', 'p1/m', { how: 'UnavailableError' })],
    [
      'a cluster that gives up after a second',
      changed('settles', 'p1/1', {
        how: 'UnavailableError',
        message: 'not available for 60000 ms',
      }),
      { steps: [...alone.steps, crash] },
    ],
  ],
  beginsSeldom: [
    [
      'an innocent that begins three times',
      history(...[2, 3].map((attempt) => event(200, 'n1', 'begins', { id: 'p1/1', attempt }))),
    ],
    [
      'a poison that begins five times',
      history(
        ...[2, 3, 4, 5].map((attempt) => event(200, 'n1', 'begins', { id: 'p1/3', attempt })),
      ),
    ],
  ],
  beginsOnce: [
    [
      'a function with retries: 0 that begins twice',
      history(
        event(200, 'p1', 'calls', { id: 'p1/9', kind: 'run', is: 1, once: true }),
        ...[1, 2].map((attempt) => event(201, 'n1', 'begins', { id: 'p1/9', attempt })),
        event(300, 'p1', 'settles', { id: 'p1/9', how: 'ok', value: 1 }),
      ),
    ],
  ],
  tellsAttempts: [
    [
      'a second begin that is told to be the first',
      history(event(200, 'n1', 'begins', { id: 'p1/1', attempt: 1 })),
    ],
  ],
  makesKeysOnce: [['a key that is made twice', history(event(200, 'n1', 'ends', { id: 'k' }))]],
  hasOneHolder: [
    ['two that have the cluster', history(...rival(26_000), ...rival(55_000).slice(-1)), rivals],
    [
      'one that goes on, though another has the key',
      history(event(500, 'world', 'stored', { by: 'p2', subject: '$KV.allstop_c.run' })),
      rivals,
    ],
  ],
  tellsOfLeaving: [
    [
      'a function that is not told that its worker leaves',
      history(
        event(200, 'p1', 'calls', { id: 'p1/9', kind: 'run', is: 1, isPatient: true }),
        event(201, 'n1/t1', 'begins', { id: 'p1/9', attempt: 1 }),
        event(300, 'n1', 'leaves'),
        event(4_000, 'n1/t1', 'hears', { id: 'p1/9' }),
        event(4_001, 'n1/t1', 'ends', { id: 'p1/9' }),
        event(4_002, 'p1', 'settles', { id: 'p1/9', how: 'ok', value: 1 }),
      ),
    ],
  ],
  writesNothingLost: [
    [
      'a write of a program that knows of its end',
      history(
        ...call('p1/9', 300, 'run', { is: 1 }, lost),
        event(500, 'world', 'stored', { by: 'p1', subject: '$O.checkpoints.M.x' }),
      ),
      rivals,
    ],
  ],
  tellsOfTwo: [
    ['a program that is not told', history(warning(9_500, 'p1'), two), apart],
    ['one that is told late', history(warning(9_500, 'p1'), warning(25_000, 'p2'), two), apart],
    [
      'a doctor that sees one alone',
      [
        ...history(warning(9_500, 'p1'), warning(9_600, 'p2')),
        event(30_000, 'doc', 'doctor', { from: 29_900, problems: [] }),
      ],
      apart,
    ],
  ],
  stopsOnce: [
    ['a thread that has not heard of the stop', stopped({ 'n1/t1': 'none' })],
    ['two records of one stop', stopped({ 'n1/t1': 'r', 'n1/t2': 'other' })],
    ['a stop that nobody has asked for', stopped({ 'n1/t1': 'r' }, 'p1/other')],
    ['another error that is thrown', stopped({ 'n1/t1': 'r' }, 'p1/s', 'other')],
    ['a stop that is lost', history(event(200, 'p1', 'stops', { id: 'p1/s' }))],
  ],
  keepsResources: [
    [
      'more than there is',
      history(
        ...['g4', 'g5', 'g6'].map((id) =>
          event(200, 'n1/t1', 'begins', { id, attempt: 1, needs: 1 }),
        ),
      ),
    ],
    ['a node that has none', history(event(200, 'n2/t1', 'begins', { id: 'g4', needs: 1 }))],
  ],
  drawsOnce: [
    ['an item twice', history(event(200, 'n1/t1', 'draws', { made: 'd1', number: 1 }))],
    ['a generator that is ended twice', history(event(200, 'n1/t1', 'returns', { made: 'd1' }))],
    ['one that is never ended', history(event(200, 'n1/t1', 'makes', { made: 'd2' }))],
  ],
  joinsAll: [
    [
      'a call that goes on after the join',
      history(
        event(200, 'p1', 'calls', { id: 'p1/9', kind: 'scheduled' }),
        event(201, 'p1', 'joins'),
      ),
    ],
    ['an error that is thrown twice', history(event(200, 'p1', 'throws', { message: 'p1/8' }))],
    ['one that is never thrown', history().filter(({ what }) => what !== 'throws')],
    ['another error', history(event(200, 'p1', 'throws', { how: 'TypeError', message: 'x' }))],
  ],
  nobodyStarves: [
    [
      'a call that waits while others are served',
      history(
        event(200, 'p1', 'calls', { id: 'p1/9', kind: 'run', is: 1 }),
        event(16_000, 'p1', 'settles', { id: 'p1/9', how: 'ok', value: 1 }),
      ),
    ],
  ],
  ends: [
    ['a program that does not end', history(event(200, 'world', 'unfinished', { error: 'late' }))],
  ],
  isQuiet: [
    ['an error that nobody caught', history(event(200, 'n1', 'uncaught', { error: 'Error' }))],
    ['a warning', history(event(200, 'p1', 'warning', { message: 'leak' }))],
  ],
  isBounded: [['clients that stay', history(event(200, 'world', 'over', over({ clients: [9] })))]],
  keepsWindows: [
    [
      'more to a program than its nodes may send',
      history(event(200, 'world', 'over', over({ bytes: { p1: 2_300_000 } }))),
    ],
    [
      'more to a node than one program may send',
      history(event(200, 'world', 'over', over({ bytes: { n1: 1_300_000 } }))),
    ],
  ],
  forgets: [
    [
      'a call at its node',
      history(event(200, 'p1', 'keeps', { held: { n1: { calls: 1, values: 0 } } })),
    ],
    [
      'a call that has settled',
      history(event(200, 'p1', 'keeps', { held: { p1: { calls: 1, values: 0 } } })),
    ],
    [
      'the value of one that a lost node may have',
      history(
        event(150, 'world', 'dies', { name: 'n1', why: 'kill -9' }),
        event(200, 'p1', 'keeps', { held: { p1: { calls: 1, values: 1 } } }),
      ),
    ],
    [
      'more than a lost node can have',
      history(
        event(150, 'world', 'dies', { name: 'n1', why: 'kill -9' }),
        event(200, 'p1', 'keeps', { held: { p1: { calls: 65, values: 0 } } }),
      ),
    ],
  ],
  storesLittle: [
    [
      'two messages of one key',
      history(event(200, 'world', 'over', over({ kept: [{ stream: 'KV_results', messages: 2 }] }))),
    ],
    [
      'a key of the run that is never overwritten',
      history(
        event(200, 'world', 'over', over({ kept: [{ stream: 'KV_allstop_c', messages: 2 }] })),
      ),
    ],
    [
      'checkpoints that are never removed',
      history(
        event(200, 'world', 'over', over({ kept: [{ stream: 'OBJ_checkpoints', messages: 13 }] })),
      ),
    ],
    [
      'consumers that nobody ends',
      history(
        event(200, 'world', 'over', over({ kept: [{ stream: 'KV_allstop_c', consumers: 2 }] })),
      ),
    ],
  ],
  countsRight: [
    ['an update that is lost', changed('read', 'p1/r', { value: 0 })],
    ['an update that counts twice', changed('read', 'p1/r', { value: 2 })],
  ],
  restoresNewest: [
    [
      'an older checkpoint',
      history(
        event(200, 'p1', 'saves', { save: 's2', done: 6 }),
        event(201, 'p1', 'saved', { save: 's2' }),
        event(300, 'p1~2', 'restores'),
        event(301, 'p1~2', 'restored', { save: 's1', done: 3, value: 3 }),
      ),
    ],
    [
      'none, though one was saved',
      history(
        event(300, 'p1~2', 'restores'),
        event(301, 'p1~2', 'restored', { save: 'none', done: 0, value: 0 }),
      ),
    ],
    [
      'a state beside other variables',
      history(
        event(300, 'p1~2', 'restores'),
        event(301, 'p1~2', 'restored', { save: 's1', done: 3, value: 4 }),
      ),
    ],
    ['a sum that is wrong', history(event(300, 'p1', 'trained', { done: 6, value: 5 }))],
  ],
  worksOn: [
    [
      'a work that fails',
      history(event(200, 'p1', 'work fails', { kind: 'adds', how: 'TypeError' })),
    ],
    [
      'a takeover without a rival',
      history(event(200, 'p1', 'work fails', { kind: 'adds', ...lost })),
    ],
  ],
  reconnectsSoon: [
    [
      'a node that looks for the server too long',
      history(event(1_100, 'n1', 'disconnected'), event(9_600, 'n1', 'connected')),
      { steps: [...alone.steps, crash] },
    ],
  ],
  doctorKnows: [
    [
      'a doctor who sees nothing',
      [
        ...history(event(150, 'world', 'dies', { name: 'n1', why: 'kill -9' })),
        event(61_000, 'p1', 'calls', { id: 'p1/w', kind: 'run' }),
        event(70_000, 'doc', 'doctor', { from: 69_900, problems: [] }),
      ],
    ],
    [
      'a doctor who does not see what nobody has',
      [
        ...history(event(150, 'p1', 'calls', { id: 'p1/w', kind: 'run', needs: 3 })),
        event(50_500, 'doc', 'doctor', { from: 50_000, problems: [] }),
      ],
    ],
    [
      'a doctor who sees what is not',
      history(event(41_000, 'doc', 'doctor', { from: 40_900, problems: ['task worker:0: left'] })),
    ],
  ],
};

test('accept what goes right', () => {
  assert.deepEqual(judge(history(), alone), []);
  const taken = history(
    ...call('p1/9', 300, 'run', { is: 1 }, lost),
    ...rival(400),
    event(500, 'world', 'stored', { by: 'p2', subject: '$KV.allstop_c.run' }),
  ).filter(({ id, at }) => id !== 'p1/6' && at !== 60_000);
  assert.deepEqual(judge(taken, rivals), []);
  assert.deepEqual(judge(stopped({ 'n1/t1': 'r', 'n1/t2': 'r' }), alone), []);
  assert.deepEqual(judge(history(warning(9_500, 'p1'), warning(9_600, 'p2'), two), apart), []);
});

test('have each a history that only they reject', () => {
  assert.deepEqual(Object.keys(wrong).toSorted(), Object.keys(judges).toSorted());
});

describe.each(Object.entries(wrong))('%s rejects', (name, cases) => {
  test.each(cases)('%s', (_what, planted, plan = alone) => {
    const of = judges[name];
    assert.ok(of !== undefined && of(planted, plan).length > 0);
  });
});
