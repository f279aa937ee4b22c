/** Errors that native threads report by name, as addons in any language do. */

import { constants } from 'node:os';
import { getSystemErrorMap } from 'node:util';
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

  const failed = (operation: string, errno: number) => {
    const coord = new Coordinator();
    addon.call(coord, operation, `${errno}`);
    return coord.stopRecord?.error;
  };

  it.each(Object.entries(constants.errno))("has Node's code and errno of %s", (name, errno) => {
    const error = failed('systemError', errno) as NodeJS.ErrnoException;
    expect(error.errno).toBe(-errno);
    // Some names are synonyms: EWOULDBLOCK is EAGAIN.
    expect(constants.errno[error.code as keyof typeof constants.errno], name).toBe(errno);
  });

  it('has the code and errno of a number that only libuv knows, or nobody', () => {
    const [shutdown] = [...getSystemErrorMap()].find(([, [name]]) => name === 'ESHUTDOWN') ?? [0];
    expect(failed('systemError', -shutdown)).toMatchObject({ code: 'ESHUTDOWN', errno: shutdown });
    expect(failed('systemError', 9999)).toMatchObject({
      code: 'ERR_ALLSTOP_NATIVE',
      errno: -9999,
    });
  });

  it('has its errno beside a code of its own, in each class, also as an error of C', () => {
    const { ENOENT } = constants.errno;
    const expected = { code: 'ECUSTOM', errno: -ENOENT };
    expect(failed('errno', ENOENT)).toMatchObject(expected);
    expect(failed('errnoOfTypeError', ENOENT)).toBeInstanceOf(TypeError);
    expect(failed('errnoOfTypeError', ENOENT)).toMatchObject(expected);
    for (const none of [0, 2 ** 32 - 1]) {
      expect(failed('errno', none)).not.toHaveProperty('errno');
    }
  });
});

describe('an error of JavaScript, read by a native thread,', () => {
  const causesOf = (coord: Coordinator): string[] => addon.call(coord, 'causes').split('\n');

  it('has its causes', () => {
    const coord = new Coordinator();
    const root = Object.assign(new RangeError('sector 7'), { code: 'E_SECTOR' });
    coord.requestStop(new TypeError('no index', { cause: new Error('no page', { cause: root }) }));
    coord.requestStop(new Error('later', { cause: 'a word' }));
    expect(causesOf(coord)).toEqual([
      'TypeError : no index <- Error : no page <- RangeError E_SECTOR: sector 7',
      'Error : later <- string : a word',
    ]);
    expect(coord.stopRecord?.error).toMatchObject({ cause: { cause: root } });
  });

  it('has the first 32 of a long chain, and each of a circle once', () => {
    const long = new Coordinator();
    let error = new Error('0');
    for (let i = 1; i <= 40; i++) error = new Error(`${i}`, { cause: error });
    long.requestStop(error);
    expect(causesOf(long)[0]?.split(' <- ')).toHaveLength(33);

    const circle = new Coordinator();
    const one = new Error('one');
    one.cause = new Error('other', { cause: one });
    circle.requestStop(one);
    expect(causesOf(circle)).toEqual(['Error : one <- Error : other']);
  });

  it('has the causes of the error of a worker', async () => {
    const coord = new Coordinator();
    const source = `const { Coordinator } = await import(${JSON.stringify(import.meta.resolve('allstop'))});
      Coordinator.current().requestStop(new TypeError('from there', { cause: new Error('root') }));`;
    coord.spawn(new URL(`data:text/javascript,${encodeURIComponent(source)}`));
    await expect(coord.join()).rejects.toThrow('from there');
    expect(causesOf(coord)).toEqual(['TypeError : from there <- Error : root']);
  });
});
