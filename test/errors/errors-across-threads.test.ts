// The thread that reported an error gets the identical value. Every other thread gets a copy with
// all its fields, and of the same class if that is built in or one of the package's.

import {
  AllstopError,
  CancelledError,
  ClosureInputError,
  ClusterNotReadyError,
  Coordinator,
  DeadlineExceededError,
  FailedPreconditionError,
  InvalidArgumentError,
  InvalidHandleError,
  NativeError,
  OutOfRangeError,
  type ReadinessReport,
  SelfJoinError,
  StragglersError,
  UnavailableError,
} from 'allstop';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OtherThread } from '../support/other-thread.ts';
import { runScript, saidOf } from '../support/run-script.ts';
import { addon } from '../support/test-addon.ts';

let there: OtherThread;
beforeAll(() => {
  there = new OtherThread();
});
afterAll(() => there.end());

const builtins = [
  Error,
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
] as const;
const ours = [
  AllstopError,
  OutOfRangeError,
  CancelledError,
  DeadlineExceededError,
  FailedPreconditionError,
  InvalidArgumentError,
  UnavailableError,
  InvalidHandleError,
  SelfJoinError,
  ClosureInputError,
] as const;

/** A coordinator stopped with `error`. No error is clean here: clean-stops.test.ts is about those. */
function stoppedBy(error: unknown): Coordinator {
  const coord = new Coordinator({ cleanStopErrors: [] });
  coord.requestStop(error);
  return coord;
}

function named<T extends { name: string }>(classes: T[]): [string, T][] {
  return classes.map((each) => [each.name, each]);
}

type Facts = ReturnType<typeof facts>;
function facts(error: Error & { code?: unknown; detail?: unknown }): {
  class: string;
  tag: string;
  name: string;
  message: string;
  code: unknown;
  detail: unknown;
  cause: unknown;
  stack: string | undefined;
  keys: string[];
} {
  const cause = error.cause as Error | undefined;
  return {
    class: error.constructor.name,
    tag: Object.prototype.toString.call(error),
    name: error.name,
    message: error.message,
    code: error.code,
    detail: error.detail,
    cause: cause && [cause.constructor.name, cause.message, cause.stack],
    stack: error.stack,
    keys: Object.keys(error).toSorted(),
  };
}

describe.each(named([...builtins, ...ours]))('%s', (_, errorClass) => {
  const make = (): Error =>
    Object.assign(new errorClass('the message', { cause: new TypeError('the cause') }), {
      detail: { at: 5 },
    });

  it('goes to another thread', async () => {
    const error = make();
    expect(await there.see(stoppedBy(error), facts)).toEqual(facts(error));
  });

  it('comes from another thread', async () => {
    const coord = new Coordinator({ cleanStopErrors: [] });
    await there.report(
      coord,
      ({ argument: name, ...tools }) => {
        const classes = { ...globalThis, ...tools } as unknown as Record<string, typeof Error>;
        const chosen = classes[name] ?? (globalThis as never as typeof classes)[name];
        return Object.assign(new (chosen as typeof Error)('the message'), { detail: { at: 5 } });
      },
      errorClass.name,
    );
    const error = coord.stopRecord?.error as Error;
    expect(error).toBeInstanceOf(errorClass);
    expect(error.constructor).toBe(errorClass);
    expect(facts(error)).toEqual(await there.see(coord, facts));
    expect(error.stack).toContain('the message');
    await expect(coord.join()).rejects.toBe(error);
    expect(coord.signal.reason).toBe(error);
    expect(() => coord.raiseRequestedException()).toThrow(error);
  });

  it('is itself again when it comes back', async () => {
    const error = make();
    const again = new Coordinator({ cleanStopErrors: [] });
    await there.pass(stoppedBy(error), again);
    expect(again.stopRecord?.error).toBe(error);
    await expect(again.join()).rejects.toBe(error);
  });
});

describe('errors with more to them', () => {
  it('an AggregateError has its errors, each of its class, with fields and causes', async () => {
    const missing = Object.assign(new RangeError('missing', { cause: new URIError('why') }), {
      code: 'ERR_MISSING',
    });
    const error = new AggregateError([missing, new CancelledError('cancelled'), 5], 'all failed');
    const seen = await there.see(stoppedBy(error), (copy) => ({
      class: copy.constructor.name,
      message: copy.message,
      enumerable: Object.keys(copy),
      errors: copy.errors.map((each: unknown) =>
        each instanceof Error ? [each.constructor.name, each.message, Object.entries(each)] : each,
      ),
      cause: copy.errors[0].cause.constructor.name,
    }));
    expect(seen).toEqual({
      class: 'AggregateError',
      message: 'all failed',
      enumerable: [],
      errors: [
        ['RangeError', 'missing', [['code', 'ERR_MISSING']]],
        ['CancelledError', 'cancelled', [['code', 'ERR_ALLSTOP_CANCELLED']]],
        5,
      ],
      cause: 'URIError',
    });
  });

  it.each(['AbortError', 'DataCloneError', 'TimeoutError', 'NoSuchName'])(
    'a DOMException keeps its class and its name, %s',
    async (name) => {
      const error = new DOMException('of the web', name);
      const seen = await there.see(stoppedBy(error), (copy) => ({
        class: copy.constructor === DOMException,
        instance: copy instanceof DOMException && copy instanceof Error,
        name: copy.name,
        message: copy.message,
        code: copy.code,
        stack: copy.stack,
      }));
      expect(seen).toEqual({
        class: true,
        instance: true,
        name,
        message: 'of the web',
        code: error.code,
        stack: error.stack,
      });
    },
  );

  it('ours have the fields that are theirs alone', async () => {
    const stragglers = [{ name: 'T1', kind: 'worker' as const, threadId: 7, runningForMs: 12 }];
    const report: ReadinessReport = { ready: false, engine: { phase: 'connecting' }, tasks: [] };
    const causes = new AggregateError([
      new StragglersError('left', { stragglers }),
      new NativeError('what', { nativeType: 'std::runtime_error' }),
      new ClusterNotReadyError('not ready', { report }),
    ]);
    const seen = await there.see(stoppedBy(causes), (copy, tools) => [
      copy.errors[0] instanceof tools.StragglersError && copy.errors[0].stragglers,
      copy.errors[1] instanceof tools.NativeError && copy.errors[1].nativeType,
      copy.errors[2] instanceof tools.ClusterNotReadyError && copy.errors[2].report,
      copy.errors.map((error: { code: string }) => error.code),
    ]);
    const codes = ['STRAGGLERS', 'NATIVE', 'CLUSTER_NOT_READY'].map(
      (code) => `ERR_ALLSTOP_${code}`,
    );
    expect(seen).toEqual([stragglers, 'std::runtime_error', report, codes]);
  });

  it("a class of the user's becomes its nearest known base; the name is kept", async () => {
    class Timeout extends DeadlineExceededError {
      override readonly name = 'Timeout';
      readonly ms = 5;
    }
    class HttpTimeout extends Timeout {
      readonly #secret = 'not a field';
      url = 'http://example.test/';
      get secret(): string {
        return this.#secret;
      }
    }
    class Local extends RangeError {}
    class Web extends DOMException {}
    const see = (error: Error): Promise<Facts> => there.see(stoppedBy(error), facts);
    expect(await see(new HttpTimeout('late'))).toMatchObject({
      class: 'DeadlineExceededError',
      name: 'Timeout',
      code: 'ERR_ALLSTOP_DEADLINE_EXCEEDED',
      keys: ['code', 'ms', 'name', 'url'],
    });
    expect(await see(new Local('local'))).toMatchObject({
      class: 'RangeError',
      name: 'RangeError',
    });
    expect(await see(new Web('web', 'AbortError'))).toMatchObject({
      class: 'DOMException',
      name: 'AbortError',
    });
  });

  it('a name that was set is kept, enumerable or not', async () => {
    const set = Object.assign(new TypeError('m'), { name: 'Set' });
    const defined = Object.defineProperty(new TypeError('m'), 'name', { value: 'Defined' });
    expect(await there.see(stoppedBy(set), facts)).toMatchObject({ name: 'Set', keys: ['name'] });
    expect(await there.see(stoppedBy(defined), facts)).toMatchObject({ name: 'Defined', keys: [] });
  });

  it('is identical wherever this thread meets it', async () => {
    const error = new TypeError('first');
    const later = new RangeError('later');
    const coord = stoppedBy(error);
    coord.requestStop(later);
    expect(coord.stopRecord?.error).toBe(error);
    expect(coord.stopRecord?.suppressed[0]?.error).toBe(later);
    expect(coord.explain().record?.error).toBe(error);
    expect(coord.signal.reason).toBe(error);
    expect(() => coord.raiseRequestedException()).toThrow(error);
    await expect(coord.join()).rejects.toBe(error);
    await expect(coord.join()).rejects.toBe(error);
  });

  it('is one object over there, too, however often it is looked at', async () => {
    const coord = stoppedBy(new TypeError('one'));
    const same = await there.see(coord, async (error, { coord: attached }) => {
      const checks: unknown[] = [
        attached.stopRecord?.error === error,
        attached.signal.reason === error,
      ];
      try {
        await attached.join();
      } catch (joined) {
        checks.push(joined === error);
      }
      return checks;
    });
    expect(same).toEqual([true, true, true]);
  });

  it('a shared cause is one object in two records', async () => {
    const cause = new Error('shared');
    const first = stoppedBy(new TypeError('a', { cause }));
    const second = stoppedBy(new RangeError('b', { cause }));
    await there.see(first, (error) => Object.assign(globalThis, { seen: error.cause }) && 1);
    expect(
      await there.see(second, (error) => (globalThis as { seen?: unknown }).seen === error.cause),
    ).toBe(true);
  });
});

describe('native threads', () => {
  const describeStop = (coord: Coordinator): string[] => {
    const name = `describe ${coord.name}`;
    addon.startUnregistered(coord, 'describe', name);
    return addon.result(name)?.split('|') ?? [];
  };

  it('see the name, message, code and stack of an error of ours', () => {
    const error = Object.assign(new TypeError('broken'), { code: 'ERR_BROKEN' });
    const [kind, language, thread, ...rest] = describeStop(stoppedBy(error));
    expect({ kind, language, thread }).toEqual({ kind: '2', language: '0', thread: 'main' });
    expect(rest).toEqual(['TypeError', 'broken', 'ERR_BROKEN', 'TypeError: broken', '']);
  });

  it.each<[string, unknown, string[]]>([
    ['0', 0, ['number', '0', '', '', '']],
    ['an empty string', '', ['string', 'string', '', '', '']],
    ['a string', 'text', ['string', 'text', '', '', '']],
    ['a bigint', 5n, ['bigint', '5', '', '', '']],
    ['a symbol', Symbol('s'), ['symbol', 'Symbol(s)', '', '', '']],
    ['a plain object', { message: 'm', code: 7 }, ['Object', 'm', '7', '', '']],
    ['an object without a prototype', Object.create(null), ['Object', 'object', '', '', '']],
    [
      'an error without a prototype',
      Object.setPrototypeOf(Object.assign(new Error('bare'), { stack: 's' }), null),
      ['Error', 'bare', '', 's', ''],
    ],
  ])('see something of whatever was thrown: %s', (_, value, expected) => {
    expect(describeStop(stoppedBy(value)).slice(3)).toEqual(expected);
  });

  it.each([
    ['OutOfRangeError|drained|ERR_ALLSTOP_OUT_OF_RANGE', OutOfRangeError],
    ['CancelledError|no|ERR_ALLSTOP_CANCELLED', CancelledError],
    ['RangeError|beyond|ERR_OUT_OF_RANGE', RangeError],
    ['TypeError|wrong|', TypeError],
    ['AggregateError|all|', AggregateError],
    ['std::logic_error|odd|E42', NativeError],
  ])('report %s, which JavaScript sees as its class', async (text, errorClass) => {
    const coord = new Coordinator({ cleanStopErrors: [] });
    addon.start(coord, 'request-error', `${coord.name} T`, text);
    addon.openGate(`${coord.name} T`);
    await coord.waitForStop();
    const error = coord.stopRecord?.error as Error & { code?: string };
    const [name, message, code] = text.split('|');
    expect(error).toBeInstanceOf(errorClass);
    expect(error.name).toBe(name);
    expect(error.message).toBe(message);
    if (code !== '') expect(error.code).toBe(code);
    expect(error.stack).toContain(`${name}: ${message}`);
    expect(await there.see(coord, facts)).toEqual(facts(error));
    await expect(coord.join()).rejects.toBe(error);
  });

  it('report a message that is longer than a string, cut', { tags: 'long' }, async () => {
    const coord = new Coordinator();
    const most = 2 ** 27;
    addon.start(coord, 'request-error', `${coord.name} T`, `Error|${'x'.repeat(most + 5)}|`);
    addon.openGate(`${coord.name} T`);
    const error = (await coord.join().catch((reason: unknown) => reason)) as Error;
    const cut = '[allstop: not carried: 5 more bytes]';
    expect(error.message.length).toBe(most + cut.length);
    expect(error.message.endsWith(`x${cut}`)).toBe(true);
    expect(coord.explain().toString().length).toBeLessThan(2 * most);
  });

  it('throw exceptions, whose type and what() are known', async () => {
    const coord = new Coordinator();
    addon.start(coord, 'throw', `${coord.name} T`, 'from C++');
    addon.openGate(`${coord.name} T`);
    await coord.waitForStop();
    const error = coord.stopRecord?.error as NativeError;
    expect(error).toBeInstanceOf(NativeError);
    expect(error.message).toBe('from C++');
    expect(error.nativeType).toMatch(/CustomError$/);
    expect(error.code).toBe('ERR_ALLSTOP_NATIVE');
    expect(coord.stopRecord?.requester).toMatchObject({ language: 'native', via: 'exception' });
  });

  it('tell the same error to other threads and back again', async () => {
    const coord = new Coordinator();
    addon.start(coord, 'throw', `${coord.name} T`, 'from C++');
    addon.openGate(`${coord.name} T`);
    await coord.waitForStop();
    const again = new Coordinator();
    await there.pass(coord, again);
    expect(again.stopRecord?.error).toBe(coord.stopRecord?.error);
  });
});

it('errors keep their classes with the option --frozen-intrinsics', async () => {
  const ended = await runScript('errors', [], { execArgv: ['--frozen-intrinsics'] });
  expect(saidOf(ended, 'told')).toMatchObject({ wrong: [] });
  expect(ended.code).toBe(0);
});
