// Links refuse resources that they cannot listen to. A link that fails leaves no listener behind.

import { EventEmitter } from 'node:events';
import { constants } from 'node:os';
import { Worker } from 'node:worker_threads';
import { Coordinator, FailedPreconditionError } from 'allstop';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { throwing } from '../support/odd-values.ts';
import {
  coordinatorThatIs,
  misbehaviour,
  type Parameter,
  refusal,
  type State,
} from '../support/refusals.ts';

const wrong = (value: unknown): never => value as never;

const parameters: Parameter[] = [
  {
    call: 'stopOnClose(resource)',
    argument: 'resource',
    pass: (coord, v) => coord.stopOnClose(wrong(v)),
    objects: true,
  },
  {
    call: 'stopOnClose(process, { events })',
    argument: 'options.events',
    pass: (coord, v) => coord.stopOnClose(process, { events: wrong(v) }),
    except: ['undefined', 'array'],
    objects: true,
  },
  {
    call: 'stopOnClose(process, { events: [event] })',
    argument: 'options.events[]',
    pass: (coord, v) => coord.stopOnClose(process, { events: ['exit', wrong(v)] }),
    except: ['string'],
    objects: true,
  },
  {
    call: 'stopOnClose(process, { as })',
    argument: 'options.as',
    pass: (coord, v) => coord.stopOnClose(process, { as: wrong(v) }),
    except: ['undefined'],
    oneOf: true,
    objects: true,
  },
  {
    call: 'stopOnSignals(signals)',
    argument: 'signals',
    pass: (coord, v) => coord.stopOnSignals(wrong(v)),
    except: ['undefined', 'array'],
    objects: true,
  },
  {
    call: 'stopOnSignals([signal])',
    argument: 'signals[]',
    pass: (coord, v) => coord.stopOnSignals(['SIGUSR2', wrong(v)]),
    except: ['string'],
    objects: true,
  },
  {
    call: 'run(body, { stopOnSignals })',
    argument: 'options.stopOnSignals',
    pass: (_, v) => Coordinator.run(() => 5, { stopOnSignals: wrong(v) }),
    rejects: true,
    except: ['undefined', 'array'],
    objects: true,
  },
];

function listening(): number {
  return process
    .eventNames()
    .reduce((count, event) => count + process.listenerCount(event as 'exit'), 0);
}

describe.each<State>(['running', 'stopped', 'joined'])('a coordinator that is %s', (state) => {
  it.each(parameters)('$call refuses a wrong $argument', async (parameter) => {
    const coord = await coordinatorThatIs(state); // the first use listens for the exit
    const before = listening();
    expect(await misbehaviour(coord, parameter)).toEqual([]);
    expect(listening()).toBe(before);
  });
});

describe('signals that nobody can handle', () => {
  it.each([
    'SIGKILL',
    'SIGSTOP',
    'SIGSEGV',
    'SIGBUS',
    'SIGFPE',
    'SIGILL',
    'SIGABRT',
    'SIGIOT',
    'SIGNONE',
    'sigint',
    'INT',
    '2',
    '',
    '__proto__',
    'constructor',
    'toString',
  ])("'%s' is refused, and so are those it came with", async (name) => {
    const coord = new Coordinator();
    const before = listening();
    const { error } = await refusal(coord, () => coord.stopOnSignals(['SIGUSR2', wrong(name)]));
    expect(error).toBeInstanceOf(RangeError);
    expect(error.code).toBe('ERR_OUT_OF_RANGE');
    expect(error.message).toMatch(/^The value of "signals\[\]" is out of range\. /);
    expect(listening()).toBe(before);
  });

  it.each([
    ['SIGTEM', 'SIGTERM'],
    ['sigint', 'SIGINT'],
    ['SIGTREM', 'SIGTERM'],
    ['SIGQIUT', 'SIGQUIT'],
    ['SIGNIT', 'SIGINT'],
  ])("the error for '%s' suggests '%s'", async (name, meant) => {
    const { error } = await refusal(new Coordinator(), () =>
      Coordinator.run(() => {}, { stopOnSignals: [wrong(name)] }),
    );
    expect(error.message).toBe(
      'The value of "options.stopOnSignals[]" is out of range. It must be the name of a signal ' +
        `that can be handled. Received '${name}'. Did you mean '${meant}'?`,
    );
  });

  it('all others, and any number of them, are linked and let go of again', () => {
    const fatal = ['KILL', 'STOP', 'SEGV', 'BUS', 'FPE', 'ILL', 'ABRT', 'IOT'];
    const names = Object.keys(constants.signals).filter(
      (name) => !fatal.includes(name.slice(3)),
    ) as NodeJS.Signals[];
    const before = listening();
    const coord = new Coordinator();
    const link = coord.stopOnSignals([...names, ...names]);
    expect(coord.explain().links).toHaveLength(1);
    link[Symbol.dispose]();
    link[Symbol.dispose]();
    expect(coord.explain().links).toEqual([]);
    expect(listening()).toBe(before);
    coord.stopOnSignals([])[Symbol.dispose]();
  });

  it('stopOnSignals works in the main thread only', async () => {
    const source = `
      const { parentPort, workerData } = require('node:worker_threads');
      import(workerData).then(({ Coordinator }) => {
        const coord = new Coordinator();
        try {
          coord.stopOnSignals();
        } catch (error) {
          const { name, code } = error;
          parentPort.postMessage({ name, code, links: coord.explain().links });
        }
      });`;
    const worker = new Worker(source, { eval: true, workerData: import.meta.resolve('allstop') });
    const said = await new Promise((resolve) => worker.once('message', resolve));
    const { name } = FailedPreconditionError;
    expect(said).toEqual({ name, code: 'ERR_ALLSTOP_FAILED_PRECONDITION', links: [] });
    await worker.terminate();
  });
});

it('a link of no event, which could never stop anything, is refused', async () => {
  const coord = new Coordinator();
  const { error } = await refusal(coord, () => coord.stopOnClose(process, { events: [] }));
  expect(error).toMatchObject({
    name: 'TypeError',
    code: 'ERR_INVALID_ARG_VALUE',
  });
});

describe('a source that refuses a listener', () => {
  it('an emitter that throws at the second event has neither listener nor link', async () => {
    const emitter = new EventEmitter();
    emitter.on('newListener', (event) => {
      if (event === 'fragile') throw new Error('no listeners here');
    });
    const coord = new Coordinator();
    const events = ['close', 'fragile'];
    const { error } = await refusal(coord, () => coord.stopOnClose(emitter, { events }));
    expect(error.message).toBe('no listeners here');
    expect(emitter.listenerCount('close')).toBe(0);
  });

  it('the process will not listen to SIGKILL', async () => {
    const coord = new Coordinator();
    const before = listening();
    const events = ['exit', 'SIGKILL'];
    const { error } = await refusal(coord, () => coord.stopOnClose(process, { events }));
    expect(error.code).toBe('EINVAL');
    expect(listening()).toBe(before);
  });

  it('a signal that throws has no link', async () => {
    const coord = new Coordinator();
    const signal = {
      aborted: false,
      addEventListener() {
        throw new Error('no listeners here');
      },
      removeEventListener() {},
    };
    const { error } = await refusal(coord, () => coord.stopOnAbort(wrong(signal)));
    expect(error.message).toBe('no listeners here');
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await refusal(coord, () => coord.waitForStop(50, wrong({ signal })));
    expect(vi.getTimerCount()).toBe(0);
  });

  it('what could never be let go of again is no signal', async () => {
    const coord = new Coordinator();
    const signal = wrong({ aborted: false, addEventListener() {} });
    for (const call of [
      () => coord.stopOnAbort(signal),
      () => coord.waitForStop(10, { signal }),
      () => coord.join({ signal }),
    ]) {
      const { error } = await refusal(coord, call);
      expect(error.code).toBe('ERR_INVALID_ARG_TYPE');
    }
  });

  it.each(['constructor', 'closed', 'destroyed', 'readyState'])(
    'a resource whose %s throws changes nothing',
    async (key) => {
      const emitter = new EventEmitter();
      Object.defineProperties(
        emitter,
        Object.getOwnPropertyDescriptors(throwing(key)) as PropertyDescriptorMap,
      );
      const coord = new Coordinator();
      const { error } = await refusal(coord, () => coord.stopOnClose(emitter));
      expect(error.message).toBe(`the getter of ${key}`);
      expect(emitter.eventNames()).toEqual([]);
    },
  );

  it('an event without anything to say is no error of its own', () => {
    for (const argument of [undefined, null, 5, 'gone', { error: 5 }, {}]) {
      const emitter = new EventEmitter();
      const coord = new Coordinator();
      coord.stopOnClose(emitter, { as: 'error' });
      emitter.emit('close', argument);
      expect(coord.stopRecord?.error).toMatchObject({ code: 'ERR_ALLSTOP_UNAVAILABLE' });
      expect(emitter.eventNames()).toEqual([]);
    }
  });
});
