/** A mistake in lib/ must not become a crash: the addon checks what it is given. */
import { createRequire } from 'node:module';
import { inspect } from 'node:util';
import { Coordinator } from 'allstop';
import { describe, expect, it } from 'vitest';
import type { Addon } from '../../lib/native/binding.ts';
import { compiledBinary } from '../support/published-copy.ts';

const { setup } = createRequire(import.meta.url)(compiledBinary) as Addon;
const environment = {
  threadId: 0,
  threadName: 'main',
  isWorker: false,
  allocateSlab: () => new Int32Array(new SharedArrayBuffer(4096)),
  onRing: () => {},
};
const binding = setup(environment);
const attachment = binding.createCoordinator('its name', [], 1_000);
const queue = binding.createQueue('its queue', 1, 0, null);
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

const OTHER_TYPES = [undefined, null, true, 1, 'a string', {}, [], new Uint16Array(1)];
const isOfType: Record<string, (value: unknown) => boolean> = {
  'a string': (value) => typeof value === 'string',
  'a number': (value) => typeof value === 'number',
  'a boolean': (value) => typeof value === 'boolean',
  'an object': (value) => typeof value === 'object' && value !== null,
  'an array of strings': (value) => Array.isArray(value),
  'a Uint8Array': (value) => value instanceof Uint8Array,
};

type Call = [name: string, rightArguments: unknown[], index: number, expected: string];

function refuses(of: object, [name, rightArguments, index, expected]: Call): void {
  const call = (value: unknown): void => {
    const method = (of as Record<string, (...args: unknown[]) => unknown>)[name];
    method?.apply(of, rightArguments.with(index, value));
  };
  for (const value of OTHER_TYPES.filter((each) => !isOfType[expected]?.(each))) {
    expect(() => call(value), `${name}: ${inspect(value)}`).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        message: expect.stringContaining(
          `Internal error of allstop, please report it: argument ${index} must be ${expected}`,
        ),
      }),
    );
  }
}

describe('the functions of the addon', () => {
  it.each<Call>([
    ['createCoordinator', ['name', [], 1_000], 0, 'a string'],
    ['createCoordinator', ['name', [], 1_000], 1, 'an array of strings'],
    ['createCoordinator', ['name', [], 1_000], 2, 'a number'],
    ['attachCoordinator', [1], 0, 'a number'],
    ['createQueue', ['name', 1, 0, null], 0, 'a string'],
    ['setDoorbellReferenced', [false], 0, 'a boolean'],
    ['noteUncaught', [bytesOf(''), false], 0, 'a Uint8Array'],
    ['noteUncaught', [bytesOf(''), false], 1, 'a boolean'],
    ['setSpawned', [attachment, 1, 'worker-1'], 0, 'an object'],
  ])('%s(%j): argument %i is %s', (...call) => {
    refuses(binding, call);
  });

  it('take no array in which something is no string', () => {
    const types = ['AbortError', 1] as string[];
    expect(() => binding.createCoordinator('name', types, 1)).toThrow('an array of strings');
  });

  it.each([-1, Number.NaN, 2 ** 53, Number.POSITIVE_INFINITY])('take no %s for an id', (id) => {
    expect(() => binding.hasCoordinator(id)).toThrow('argument 0 must be an id');
  });

  it.each([
    ['behind the array', new Int32Array(new SharedArrayBuffer(8)), 2],
    ['of an array of other numbers', new Float64Array(new SharedArrayBuffer(8)), 0],
    ['of no array', {}, 0],
  ])('mirror the stop in no word %s', (_, words, index) => {
    expect(() => attachment.mirror(words as Int32Array, index, 1)).toThrow(
      'Internal error of allstop, please report it: a mirror needs a word of an Int32Array',
    );
  });

  it('find nothing by an id that nobody has', () => {
    expect(binding.hasCoordinator(2 ** 53 - 1)).toBe(false);
    expect(binding.attachCoordinator(2 ** 53 - 1)).toBeNull();
    expect(binding.attachQueue(2 ** 53 - 1)).toBeNull();
  });

  it.each([
    ['without a place', 0, 0],
    ['of an unknown codec', 1, 2],
  ])('make no queue %s', (_, capacity, codec) => {
    expect(() => binding.createQueue('name', capacity, codec, null)).toThrow(
      'unknown capacity or codec of a queue',
    );
  });

  it.each([
    ['nothing', undefined],
    ['an array of other numbers', new Float64Array(8)],
    ['no array', {}],
  ])('take no slab that is %s', (_, slab) => {
    const other = setup({ ...environment, allocateSlab: () => slab as Int32Array });
    expect(() => other.createCoordinator('name', [], 1)).toThrow();
  });
});

describe('the native object behind a coordinator', () => {
  it.each<Call>([
    ['requestStop', [null, {}, [], [], true], 2, 'an array of strings'],
    ['requestStop', [null, {}, [], [], true], 3, 'an array of strings'],
    ['requestStop', [null, {}, [], [], true], 4, 'a boolean'],
    ['waitSlice', [0, 1], 1, 'a number'],
    ['setInterested', [false], 0, 'a boolean'],
    ['addLink', ['what it is'], 0, 'a string'],
    ['child', ['name', [], 1], 0, 'a string'],
  ])('%s(%j): argument %i is %s', (...call) => {
    refuses(attachment, call);
    expect(attachment.stop()).toBeNull();
  });

  it('refuses bytes that are not an encoded error', () => {
    expect(() => attachment.requestStop(bytesOf('?'), { via: 'call' }, [], [], true, true)).toThrow(
      'argument 0 must be an encoded error',
    );
    expect(attachment.stop()).toBeNull();
  });

  it('registers no thread of an unknown kind', () => {
    expect(() => attachment.registerThread(99, 'name', undefined, true)).toThrow(
      'unknown kind of thread',
    );
    expect(attachment.threads()).toEqual([]);
  });

  it('knows no join but its own', () => {
    expect(attachment.joinRemainingMs(99, 1)).toBe(0);
    expect(attachment.joinHasEnded(99)).toBe(true);
    expect(attachment.finishJoin(99, 1)).toBeNull();
    attachment.abandonJoin(99);
    expect(attachment.joined()).toBe(false);
  });

  it('finishes no join while a thread is alive and its grace period lasts', () => {
    const thread = attachment.registerThread(0, 'busy', undefined, true);
    const join = attachment.beginJoin([]);
    expect(join).not.toBeNull();
    expect(attachment.joinHasEnded(join as number)).toBe(false);
    expect(attachment.finishJoin(join as number, 60_000)).toBeNull();
    attachment.abandonJoin(join as number);
    attachment.endThread(thread);
  });

  it('removes no link that it has not', () => {
    const link = attachment.addLink('a link');
    attachment.removeLink(link + 1);
    attachment.unlinkSignals(link + 1, true);
    expect(attachment.links()).toEqual(['a link']);
    attachment.removeLink(link);
    attachment.removeLink(link);
    expect(attachment.links()).toEqual([]);
  });

  it('cannot be made by code that has got hold of the addon', () => {
    const { constructor } = attachment as unknown as { constructor: new () => unknown };
    expect(() => new constructor()).toThrow('illegal constructor of NativeAttachment');
  });

  it('is not given a capsule twice', () => {
    const object = {};
    attachment.bindCapsule(object);
    expect(() => attachment.bindCapsule(object)).toThrow('the object has native data already');
    expect(() => queue.bindCapsule(object)).toThrow('the object has native data already');
  });
});

describe('the native object behind a queue', () => {
  it('takes no item that is neither text nor bytes', () => {
    expect(() => queue.enqueue(7 as never, true)).toThrow('an item must be a Uint8Array');
    expect(queue.size()).toBe(0);
  });

  it('has no coordinator, unless it was made with one', () => {
    expect(queue.coordinatorId).toBe('');
    expect(() => queue.coordinator()).toThrow('the queue has no coordinator');
    const other = binding.createQueue('with one', 1, 0, attachment);
    expect(other.coordinator().id).toBe(attachment.id);
  });
});

it('a program of the same process works as before', () => {
  const coordinator = new Coordinator();
  coordinator.requestStop();
  expect(coordinator.shouldStop()).toBe(true);
});
