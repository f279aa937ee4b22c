/** A mistake in lib/ must not become a crash: the native side of variables checks what it is given. */
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { type Addon, VARIABLE_TYPES } from '../../lib/native/binding.ts';
import { compiledBinary } from '../support/published-copy.ts';

const { setup } = createRequire(import.meta.url)(compiledBinary) as Addon;
const binding = setup({
  threadId: 0,
  threadName: 'main',
  isWorker: false,
  allocateSlab: () => new Int32Array(new SharedArrayBuffer(4096)),
  onRing: () => {},
});
/** Indices into VARIABLE_TYPES. */
const [NUMBER, FLOAT64, INT32] = [0, 1, 3];
const variables = binding.createVariables();
const count = variables.define('count', NUMBER, 1, false);
const pair = variables.define('pair', FLOAT64, new Float64Array([1, 2]), true);
if (count === null || pair === null) throw new Error('the names are free');

const internalError = (what: string) =>
  expect.objectContaining({
    name: 'TypeError',
    message: expect.stringContaining(what),
  });
const ofAType = internalError("a value must be a number, or an array of a variable's type");
const ofThisLength = internalError('a value of another length');
const anId = internalError('a call and an ordinal must be ids');

describe('a native variable', () => {
  it.each([undefined, null, 'text', {}, [1, 2], new Uint8Array(16), new BigInt64Array(2)])(
    'takes no value that is %s',
    (value) => {
      expect(() => pair.assign(value as never)).toThrow(ofAType);
      expect(() => pair.read(value as never)).toThrow(ofAType);
      expect(() => pair.assignAdd(value as never, 0, 0)).toThrow(ofAType);
      expect(() => variables.define('other', FLOAT64, value as never, false)).toThrow(ofAType);
      expect(variables.find('other')).toBeNull();
      expect(() => variables.assignAll([pair], [value as never])).toThrow(ofAType);
    },
  );

  it('takes no value of another length, and has its own still', () => {
    const longer = new Float64Array(3);
    expect(() => pair.assign(longer)).toThrow(ofThisLength);
    expect(() => pair.read(longer)).toThrow(ofThisLength);
    expect(() => pair.assignAdd(longer, 0, 0)).toThrow(ofThisLength);
    expect(() => variables.readAll([count, pair], [new Float64Array(1), longer])).toThrow(
      ofThisLength,
    );
    expect(() => variables.assignAll([count, pair], [new Float64Array([9]), longer])).toThrow(
      ofThisLength,
    );
    expect(count.read()).toBe(1); // none of several is assigned
    const value = new Float64Array(2);
    pair.read(value);
    expect([...value]).toEqual([1, 2]);
  });

  it.each([undefined, '1', -1, Number.NaN, 2 ** 53])('adds nothing for the call %s', (id) => {
    expect(() => count.assignAdd(1, id as never, 1)).toThrow(anId);
    expect(() => count.assignAdd(1, 1, id as never)).toThrow(anId);
    expect(count.read()).toBe(1);
  });

  it('of no elements is read and assigned', () => {
    const none = new Int32Array();
    const empty = variables.define('empty', INT32, none, false);
    empty?.assign(none);
    empty?.assignAdd(none, 0, 0);
    expect(empty?.read(none)).toBeUndefined();
    expect(empty?.byteLength).toBe(0);
  });

  it('that another process reads is copied into as many bytes only', () => {
    const { path } = pair as { path?: string };
    if (path === undefined) return expect(process.platform).not.toBe('linux');
    const read = binding.openPublished(path, 16);
    expect(() => read?.(new Float64Array(3))).toThrow(ofThisLength);
    expect(() => read?.(2 as never)).toThrow(ofAType);
    const value = new Float64Array(2);
    expect(read?.(value)).toBe(true);
    expect([...value]).toEqual([1, 2]);
  });

  it.each([count, variables])('cannot be made by code that has got hold of one: %#', (one) => {
    const { constructor } = one as unknown as { constructor: new () => unknown };
    expect(() => new constructor()).toThrow(/illegal constructor of NativeVariables?$/);
  });
});

describe('the variables of a cluster', () => {
  it('are found by their id, and not by another', () => {
    const id = Number(variables.id);
    expect(binding.attachVariables(id)?.find('count')?.read()).toBe(1);
    expect(binding.attachVariables(id + 1)).toBeNull();
  });

  it('have one type and one length by a name', () => {
    expect(variables.define('count', FLOAT64, 1, false)).toBeNull();
    expect(variables.define('pair', FLOAT64, new Float64Array(3), false)).toBeNull();
    expect(variables.define('count', NUMBER, 5, false)?.read()).toBe(1);
  });

  it('have none of an unknown type', () => {
    expect(() => variables.define('new', VARIABLE_TYPES.length, 1, false)).toThrow(
      internalError('an unknown type of variable'),
    );
    expect(variables.find('new')).toBeNull();
  });
});
