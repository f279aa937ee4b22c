// An error of a clean-stop type is a normal end: no join throws it, but the record shows it. Types
// are strings, compared with names and codes, so that they work in every thread and language.

import { runInNewContext } from 'node:vm';
import {
  AllstopError,
  CancelledError,
  Coordinator,
  DeadlineExceededError,
  NativeError,
  OutOfRangeError,
} from 'allstop';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OtherThread } from '../support/other-thread.ts';
import { addon } from '../support/test-addon.ts';

let there: OtherThread;
beforeAll(() => {
  there = new OtherThread();
});
afterAll(() => there.end());

class EndOfInput extends RangeError {}
class EndOfFile extends EndOfInput {
  readonly code = 'ERR_EOF';
}

type Types = Iterable<string | (abstract new (...args: never[]) => Error)>;

function kindOf(types: Types | undefined, error: unknown): string | undefined {
  const coord = new Coordinator(types === undefined ? {} : { cleanStopErrors: types as never });
  coord.requestStop(error);
  return coord.stopRecord?.kind;
}

describe('a clean stop', () => {
  it('is a stop without an error, whose error is in the record', async () => {
    const coord = new Coordinator();
    const error = new OutOfRangeError('drained');
    coord.requestStop(error);
    expect(coord.shouldStop()).toBe(true);
    expect(coord.stopRecord).toMatchObject({ kind: 'clean', suppressedCount: 0 });
    expect(coord.stopRecord?.error).toBe(error);
    expect(coord.signal.reason).toMatchObject({ name: 'AbortError', code: 'ABORT_ERR' });
    expect(coord.signal.reason.cause).toBe(error);
    coord.raiseRequestedException();
    await coord.join();
    expect(coord.joined).toBe(true);
    expect(coord.explain().toString()).toContain('a clean stop: OutOfRangeError: drained');
  });

  it('is one in every other thread', async () => {
    const coord = new Coordinator();
    coord.requestStop(new OutOfRangeError('drained'));
    const seen = await there.see(
      coord,
      async (error, { coord: attached, OutOfRangeError: Ours }) => {
        attached.raiseRequestedException();
        await attached.join();
        return [
          attached.stopRecord?.kind,
          error instanceof Ours,
          attached.signal.reason.cause === error,
        ];
      },
    );
    expect(seen).toEqual(['clean', true, true]);
  });

  it('is what every way of reporting makes of such an error', async () => {
    const error = new OutOfRangeError('drained');
    const reports: ((coord: Coordinator) => unknown)[] = [
      (coord) =>
        coord.stopOnException((): void => {
          throw error;
        }),
      (coord) => coord.stopOnException(() => Promise.reject(error)),
      (coord) => coord.start(() => Promise.reject(error)),
      (coord) => coord.registerThread(Promise.reject(error)),
      (coord) => coord.stopOnAbort(AbortSignal.abort(error)),
    ];
    for (const report of reports) {
      const coord = new Coordinator();
      await report(coord);
      await coord.join();
      expect(coord.stopRecord).toMatchObject({ kind: 'clean', error });
    }
  });

  it('lets run() give its value', async () => {
    const value = await Coordinator.run(async (coord) => {
      void coord.start(() => Promise.reject(new OutOfRangeError('drained')));
      await coord.waitForStop();
      return 'the value';
    });
    expect(value).toBe('the value');
  });

  it('may be requested after a join, when an error would be thrown at its reporter', async () => {
    const coord = new Coordinator();
    await coord.join();
    coord.requestStop(new OutOfRangeError('drained'));
    expect(coord.stopRecord?.kind).toBe('clean');
  });

  it('first wins: an error after it is suppressed, and one before it suppresses it', async () => {
    const clean = new OutOfRangeError('drained');
    const error = new TypeError('broken');
    const one = new Coordinator();
    one.requestStop(clean);
    one.requestStop(error);
    await one.join();
    expect(one.stopRecord?.kind).toBe('clean');
    expect(one.stopRecord?.suppressed.map((each) => each.error)).toEqual([error]);

    const other = new Coordinator();
    other.requestStop(error);
    other.requestStop(clean);
    await expect(other.join()).rejects.toBe(error);
    expect(other.stopRecord?.suppressed.map((each) => each.error)).toEqual([clean]);
  });

  it('after a plain stop is suppressed', () => {
    const coord = new Coordinator();
    coord.requestStop();
    coord.requestStop(new OutOfRangeError('drained'));
    expect(coord.stopRecord).toMatchObject({ kind: 'plain', suppressedCount: 1 });
  });
});

describe('which errors are clean', () => {
  it.each<[string, Types | undefined, unknown, string]>([
    ['ours alone, by default', undefined, new OutOfRangeError('x'), 'clean'],
    ['ours alone, by default', undefined, new RangeError('x'), 'error'],
    ['ours alone, by default', undefined, new CancelledError('x'), 'error'],
    ['none, with an empty list', [], new OutOfRangeError('x'), 'error'],
    ['those listed, and not the default', [TypeError], new OutOfRangeError('x'), 'error'],
    ['by class', [TypeError], new TypeError('x'), 'clean'],
    ['by a base class', [RangeError], new EndOfFile('x'), 'clean'],
    ['by a base class of ours', [AllstopError], new DeadlineExceededError('x'), 'clean'],
    ['all errors', [Error], new EndOfFile('x'), 'clean'],
    ['all errors', ['Error'], new DOMException('x', 'AbortError'), 'clean'],
    ['not by a derived class', [EndOfFile], new EndOfInput('x'), 'error'],
    ['by the name of a class', ['EndOfInput'], new EndOfFile('x'), 'clean'],
    ['by the error’s name', ['Named'], Object.assign(new Error('x'), { name: 'Named' }), 'clean'],
    ['by a web name', ['AbortError'], new DOMException('x', 'AbortError'), 'clean'],
    ['by code', ['ERR_EOF'], new EndOfFile('x'), 'clean'],
    ['by a code that is a number', ['7'], Object.assign(new Error('x'), { code: 7 }), 'clean'],
    ['by code of ours', ['ERR_ALLSTOP_CANCELLED'], new CancelledError('x'), 'clean'],
    [
      'by C++ type',
      ['std::runtime_error'],
      new NativeError('x', { nativeType: 'std::runtime_error' }),
      'clean',
    ],
    ['not by the message', ['x'], new Error('x'), 'error'],
    ['not by part of a name', ['Range'], new RangeError('x'), 'error'],
    ['not by another case', ['rangeerror'], new RangeError('x'), 'error'],
    ['not by cause', [TypeError], new Error('x', { cause: new TypeError('y') }), 'error'],
    ['any iterable: a Set', new Set([TypeError]), new TypeError('x'), 'clean'],
    [
      'any iterable: values of a Map',
      new Map([[1, 'TypeError']]).values(),
      new TypeError('x'),
      'clean',
    ],
    [
      'what is no error, by its class',
      ['Problem'],
      new (class Problem {
        a = 1;
      })(),
      'clean',
    ],
    ['what is no error, by its name', ['Odd'], { name: 'Odd' }, 'clean'],
    ['a primitive, never', ['boom', 'Error'], 'boom', 'error'],
  ])('%s', (_, types, error, kind) => {
    expect(kindOf(types, error)).toBe(kind);
  });

  it('reads the list once, when the coordinator is made', () => {
    const types = [TypeError as new (message: string) => Error];
    const coord = new Coordinator({ cleanStopErrors: types });
    types.length = 0;
    coord.requestStop(new TypeError('x'));
    expect(coord.stopRecord?.kind).toBe('clean');
  });

  it('takes the classes of another realm', () => {
    const types = runInNewContext('class TapeTorn extends Error {}; [TapeTorn, Error, TypeError]');
    for (const type of types) {
      expect(kindOf([type], new type('x'))).toBe('clean');
    }
    expect(kindOf([types[0]], new Error('x'))).toBe('error');
    expect(() => kindOf([runInNewContext('Map')], new Error('x'))).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }),
    );
  });

  it('refuses a bare string, which is iterable, too', () => {
    expect(() => new Coordinator({ cleanStopErrors: 'OutOfRangeError' as never })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }),
    );
  });

  it('holds for the classes of other threads', async () => {
    const coord = new Coordinator({ cleanStopErrors: ['EndOfTape'] });
    await there.report(coord, () => {
      class EndOfTape extends Error {}
      return new (class TapeTorn extends EndOfTape {})('over there');
    });
    expect(coord.stopRecord?.kind).toBe('clean');
    expect(coord.stopRecord?.error).toMatchObject({ message: 'over there' });
    await coord.join();
  });
});

describe('errors of native threads', () => {
  const reported = async (types: Types, text: string): Promise<Coordinator> => {
    const coord = new Coordinator({ cleanStopErrors: types as never });
    addon.start(coord, 'request-error', `${coord.name} T`, text);
    addon.openGate(`${coord.name} T`);
    await coord.waitForStop();
    return coord;
  };

  it.each<[string, Types, string, string]>([
    ['by the name of our class', [OutOfRangeError], 'OutOfRangeError|x|', 'clean'],
    ['by a name of their own', ['EndOfStream'], 'EndOfStream|x|', 'clean'],
    ['by code', ['E_END'], 'Whatever|x|E_END', 'clean'],
    ['not by another', ['E_END'], 'Whatever|x|E_ENDED', 'error'],
  ])('%s', async (_, types, text, kind) => {
    const coord = await reported(types, text);
    expect(coord.stopRecord?.kind).toBe(kind);
    expect(coord.stopRecord?.requester.language).toBe('native');
    const joined = coord.join();
    if (kind === 'clean') await joined;
    else await expect(joined).rejects.toBe(coord.stopRecord?.error);
  });

  it('that were thrown are clean by their C++ type, or as a NativeError', async () => {
    const thrown = async (types: Types): Promise<Coordinator> => {
      const coord = new Coordinator({ cleanStopErrors: types as never });
      addon.start(coord, 'throw', `${coord.name} T`, 'from C++');
      addon.openGate(`${coord.name} T`);
      await coord.waitForStop();
      return coord;
    };
    const error = (await thrown([])).stopRecord?.error as NativeError;
    expect((await thrown([error.nativeType])).stopRecord?.kind).toBe('clean');
    expect((await thrown([NativeError])).stopRecord?.kind).toBe('clean');
    expect((await thrown(['std::logic_error'])).stopRecord?.kind).toBe('error');
  });
});

describe('children', () => {
  it('inherit the types of their parent, unless they have their own', () => {
    const parent = new Coordinator({ cleanStopErrors: [TypeError] });
    const kind = (child: Coordinator, error: unknown): unknown => {
      child.requestStop(error);
      return child.stopRecord?.kind;
    };
    expect(kind(parent.child(), new TypeError('x'))).toBe('clean');
    expect(kind(parent.child(), new OutOfRangeError('x'))).toBe('error');
    expect(kind(parent.child().child(), new TypeError('x'))).toBe('clean');
    expect(kind(parent.child({ cleanStopErrors: [] }), new TypeError('x'))).toBe('error');
    const own = { cleanStopErrors: [RangeError] };
    expect(kind(parent.child(own), new RangeError('x'))).toBe('clean');
    expect(kind(parent.child(own), new TypeError('x'))).toBe('error');
    expect(parent.shouldStop()).toBe(false);
  });

  it('judge the error that stopped their parent by their own types', async () => {
    const parent = new Coordinator({ cleanStopErrors: [TypeError] });
    const alike = parent.child();
    const strict = parent.child({ cleanStopErrors: [] });
    const error = new TypeError('x');
    parent.requestStop(error);
    expect(parent.stopRecord?.kind).toBe('clean');
    expect(alike.stopRecord).toMatchObject({ kind: 'clean', requester: { via: 'parent' } });
    expect(strict.stopRecord).toMatchObject({ kind: 'error', requester: { via: 'parent' } });
    await parent.join();
    await alike.join();
    await expect(strict.join()).rejects.toBe(error);
  });
});
