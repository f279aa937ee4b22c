/** Errors that native threads report by name, as addons in any language do. */

import * as allstop from 'allstop';
import { AllstopError, Coordinator, NativeError, type StragglersError } from 'allstop';
import { describe, expect, it } from 'vitest';
import { addon } from '../support/test-addon.ts';

function reported(name: string, cleanStopErrors: (string | allstop.ErrorClass)[] = []) {
  const coord = new Coordinator({ cleanStopErrors });
  addon.call(coord, 'requestStopError', name);
  return coord.stopRecord;
}

const ours = Object.entries(allstop).filter(
  ([name, value]) =>
    name !== 'AllstopError' && (value as { prototype?: unknown }).prototype instanceof AllstopError,
) as [string, new () => AllstopError][];

describe('an error of a native thread', () => {
  it.each(ours)('named %s has its class, its code and its fields', (name, errorClass) => {
    const error = reported(name)?.error as AllstopError;
    expect(error).toBeInstanceOf(errorClass);
    expect(error.code).toBe(new errorClass().code);
    expect(error.message).toBe('from native');
    if (name === 'StragglersError') expect((error as StragglersError).stragglers).toEqual([]);
  });

  it.each(ours)(
    'named %s is clean by name, by code, and by its base classes',
    (name, errorClass) => {
      for (const type of [name, new errorClass().code, AllstopError, 'Error']) {
        expect(reported(name, [type])?.kind, String(type)).toBe('clean');
      }
    },
  );

  it('with a name of its own is a NativeError, which has that name', () => {
    const error = reported('DiskError')?.error;
    expect(error).toBeInstanceOf(NativeError);
    expect(error).toMatchObject({ name: 'DiskError', message: 'from native' });
    expect(reported('DiskError', ['DiskError'])?.kind).toBe('clean');
    expect(reported('DiskError', [NativeError])?.kind).toBe('clean');
  });

  it('with a name of JavaScript is of that class', () => {
    const error = reported('RangeError')?.error;
    expect(error).toBeInstanceOf(RangeError);
    expect(error).not.toHaveProperty('code');
  });
});
