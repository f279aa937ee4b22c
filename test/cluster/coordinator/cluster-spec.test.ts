/** The ClusterSpec tests of TensorFlow's server_lib_test.py, and bad input. */
import { describe, expect, it } from 'vitest';
import { ClusterSpec } from '../../../dist/cluster/index.js';

const sparse = { ps: { 0: 'ps0:2222', 3: 'ps3:2222' }, worker: ['w0:2222', 'w1:2222'] };

describe('a ClusterSpec', () => {
  it('answers what it was made of', () => {
    const spec = new ClusterSpec(sparse);
    expect(spec.jobs).toEqual(['ps', 'worker']);
    expect(spec.numTasks('ps')).toBe(2);
    expect(spec.taskIndices('ps')).toEqual([0, 3]);
    expect(spec.taskAddress('ps', 3)).toBe('ps3:2222');
    expect(spec.jobTasks('ps')).toEqual(['ps0:2222', undefined, undefined, 'ps3:2222']);
    expect(spec.jobTasks('worker')).toEqual(['w0:2222', 'w1:2222']);
    expect(spec.asDict()).toEqual(sparse);
    expect(JSON.parse(JSON.stringify(spec))).toEqual(JSON.parse(JSON.stringify(sparse)));
  });

  it('of another one, of its own plain data, and of a dense object is equal', () => {
    const spec = new ClusterSpec(sparse);
    expect(new ClusterSpec(spec).equals(spec)).toBe(true);
    expect(new ClusterSpec(spec.asDict()).equals(spec)).toBe(true);
    const list = new ClusterSpec({ worker: ['a', 'b'] });
    const keyed = new ClusterSpec({ worker: { 1: 'b', 0: 'a' } });
    expect(list.equals(keyed)).toBe(true);
    expect(keyed.asDict()).toEqual({ worker: ['a', 'b'] });
  });

  it.each([
    [{ worker: ['a'] }],
    [{ worker: ['a', 'c'] }],
    [{ worker: { 0: 'a', 2: 'b' } }],
    [{ ps: ['a', 'b'] }],
    [{}],
  ])('with other tasks is not: %j', (jobs) => {
    const spec = new ClusterSpec({ worker: ['a', 'b'] });
    expect(spec.equals(new ClusterSpec(jobs))).toBe(false);
    expect(spec.equals(jobs)).toBe(false);
  });

  it('may be empty, and a job may have no task', () => {
    expect(new ClusterSpec({}).isEmpty).toBe(true);
    const spec = new ClusterSpec({ worker: [] });
    expect(spec.isEmpty).toBe(false);
    expect(spec.numTasks('worker')).toBe(0);
    expect(spec.jobTasks('worker')).toEqual([]);
    expect(spec.asDict()).toEqual({ worker: [] });
  });

  it('takes any name of a job', () => {
    const jobs = JSON.parse('{ "__proto__": ["a"], "constructor": { "1": "b" } }');
    const spec = new ClusterSpec(jobs);
    expect(spec.jobs).toEqual(['__proto__', 'constructor']);
    expect(spec.taskAddress('__proto__', 0)).toBe('a');
    expect(new ClusterSpec(spec.asDict()).equals(spec)).toBe(true);
  });
});

it.each([
  new Map([['worker', ['a']]]),
  { worker: new Map([[0, 'a']]) },
  { worker: new Set(['a']) },
])('a ClusterSpec of %o is refused, not taken for an empty one', (jobs) => {
  expect(() => new ClusterSpec(jobs as never)).toThrow(
    expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' }),
  );
});

describe('the union', () => {
  it('concatenates lists, in order', () => {
    const union = ClusterSpec.union(
      { worker: ['a'] },
      { worker: ['b'], ps: ['p'] },
      { worker: ['c'] },
    );
    expect(union.asDict()).toEqual({ ps: ['p'], worker: ['a', 'b', 'c'] });
  });

  it('keeps indexes where one of them is given by index', () => {
    const union = ClusterSpec.union(
      { worker: ['a', 'b'] },
      new ClusterSpec({ worker: { 4: 'e' } }),
    );
    expect(union.asDict()).toEqual({ worker: { 0: 'a', 1: 'b', 4: 'e' } });
  });

  it('refuses two tasks with one index', () => {
    const twice = (): ClusterSpec =>
      ClusterSpec.union({ worker: ['a'] }, { worker: { 0: 'b', 5: 'c' } });
    expect(twice).toThrow(expect.objectContaining({ code: 'ERR_ALLSTOP_INVALID_ARGUMENT' }));
  });

  it('of nothing is empty', () => {
    expect(ClusterSpec.union().isEmpty).toBe(true);
  });
});

describe('bad input', () => {
  it.each([
    [undefined],
    [null],
    [1],
    ['worker'],
    [['a']],
    [{ worker: 'a' }],
    [{ worker: [1] }],
    [{ worker: [''] }],
  ])('of a wrong type: %j', (jobs) => {
    const make = (): ClusterSpec => new ClusterSpec(jobs as never);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }));
  });

  it.each([['-1'], ['1.5'], ['01'], ['first'], ['1e3'], ['1000000001']])(
    'an index that is not valid: %s',
    (index) => {
      const make = (): ClusterSpec => new ClusterSpec({ worker: { [index]: 'a' } as never });
      expect(make).toThrow(RangeError);
      expect(make).toThrow(expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }));
    },
  );

  it('an empty name of a job', () => {
    const make = (): ClusterSpec => new ClusterSpec({ '': ['a'] });
    expect(make).toThrow(
      expect.objectContaining({
        code: 'ERR_ALLSTOP_INVALID_ARGUMENT',
        message: 'The name of a job is empty',
      }),
    );
  });

  it.each([
    ['numTasks', [], 'job'],
    ['numTasks', [1], 'job'],
    ['taskIndices', [null], 'job'],
    ['jobTasks', [['worker']], 'job'],
    ['taskAddress', [undefined, 0], 'job'],
    ['taskAddress', ['worker', '0'], 'index'],
    ['taskAddress', ['worker'], 'index'],
  ] as const)('%s of a wrong type: %j', (call, args, argument) => {
    const spec = new ClusterSpec({ worker: ['a'] });
    const ask = (): unknown => (spec[call] as (...given: unknown[]) => unknown)(...args);
    expect(ask).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'ERR_INVALID_ARG_TYPE',
        message: expect.stringContaining(`The "${argument}" argument must be of type `),
      }),
    );
  });

  it.each([-1, 0.5, Number.NaN])('taskAddress of the index %s', (index) => {
    const spec = new ClusterSpec({ worker: ['a'] });
    expect(() => spec.taskAddress('worker', index)).toThrow(
      expect.objectContaining({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' }),
    );
  });

  it.each([
    ['numTasks', ['ps']],
    ['taskIndices', ['ps']],
    ['jobTasks', ['constructor']],
    ['taskAddress', ['ps', 0]],
    ['taskAddress', ['worker', 1]],
  ] as const)('%s of what is not there: %j', (call, args) => {
    const spec = new ClusterSpec({ worker: ['a'] });
    const ask = (): unknown => (spec[call] as (...given: unknown[]) => unknown)(...args);
    expect(ask).toThrow(expect.objectContaining({ code: 'ERR_ALLSTOP_INVALID_ARGUMENT' }));
  });
});

it("reads as TensorFlow's", () => {
  expect(String(new ClusterSpec({ worker: ['b:1', 'c:1'], ps: { 2: "it's" } }))).toBe(
    `ClusterSpec({'ps': {2: "it's"}, 'worker': ['b:1', 'c:1']})`,
  );
  expect(String(new ClusterSpec({}))).toBe('ClusterSpec({})');
});
