// The functions of allstop_node.h that throw the JavaScript error for a status.

import { describe, expect, it } from 'vitest';
import { addon } from '../support/test-addon.ts';

const OK = 0;
const INVALID_ARGUMENT = 3;
const FAILED_PRECONDITION = 9;
const INVALID_HANDLE = 100;

const STATUSES: [name: string, status: number][] = [
  ['CANCELLED', 1],
  ['INVALID_ARGUMENT', INVALID_ARGUMENT],
  ['DEADLINE_EXCEEDED', 4],
  ['RESOURCE_EXHAUSTED', 8],
  ['FAILED_PRECONDITION', FAILED_PRECONDITION],
  ['OUT_OF_RANGE', 11],
  ['UNAVAILABLE', 14],
  ['INVALID_HANDLE', INVALID_HANDLE],
  ['SELF_JOIN', 101],
  ['STRAGGLERS', 102],
  ['STOPPED_BY_ERROR', 103],
];

type Thrown = Error & { code: string };
function thrown(...args: Parameters<typeof addon.throwStatus>): Thrown {
  try {
    addon.throwStatus(...args);
  } catch (error) {
    return error as Thrown;
  }
  throw new Error('It has thrown nothing');
}

describe('allstop_throw', () => {
  it.each(STATUSES)('throws ERR_ALLSTOP_%s for the status %i', (name, status) => {
    const error = thrown('allstop_throw', status, 'the reason');
    expect(error).toMatchObject({ code: `ERR_ALLSTOP_${name}`, message: 'the reason' });
    const isTypeError = status === INVALID_ARGUMENT || status === INVALID_HANDLE;
    expect(error instanceof TypeError).toBe(isTypeError);
  });

  it('has a text of its own for each status', () => {
    const texts = STATUSES.map(([, status]) => thrown('allstop_throw', status).message);
    expect(new Set(texts).size).toBe(STATUSES.length);
    expect(texts).not.toContain('');
  });

  it.each([13, 2_147_483_647, -5, -2_147_483_648])('throws the number %i as it is', (status) => {
    expect(thrown('allstop_throw', status).code).toBe(`ERR_ALLSTOP_STATUS_${status}`);
  });

  it('throws nothing for OK', () => {
    expect(() => addon.throwStatus('allstop_throw', OK, 'the reason')).not.toThrow();
  });
});

describe.each([
  [
    'allstop_throw_status',
    'Coordinator or its signal; of a handle, pass Coordinator.attach(handle)',
  ],
  ['allstop_queue_throw_status', 'BoundedQueue; of a handle, pass BoundedQueue.attach(handle)'],
  ['allstop_variable_throw_status', 'Variable'],
] as const)('%s', (fn, what) => {
  it('says what the argument must be', () => {
    expect(thrown(fn, INVALID_HANDLE)).toMatchObject({
      name: 'TypeError',
      code: 'ERR_ALLSTOP_INVALID_HANDLE',
      message: `The argument must be an allstop ${what}`,
    });
  });

  it('blames an incompatible copy for FAILED_PRECONDITION, and for nothing else', () => {
    for (const [name, status] of STATUSES) {
      const error = thrown(fn, status);
      expect(error.code).toBe(`ERR_ALLSTOP_${name}`);
      expect(/incompatible/.test(error.message)).toBe(status === FAILED_PRECONDITION);
    }
  });

  it('throws nothing for OK', () => {
    expect(() => addon.throwStatus(fn, OK)).not.toThrow();
  });
});
