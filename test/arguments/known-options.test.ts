import { BoundedQueue, Coordinator, LooperThread, QueueRunner, StragglersError } from 'allstop';
import { LocalStrategy } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import { refusal } from '../support/refusals.ts';

const wrong = (options: object): never => options as never;
const body = (): void => {};
const queue = new BoundedQueue<number>({ capacity: 4 });

type Row = [call: string, name: string, nearest: string, pass: (coord: Coordinator) => unknown];

const unknown: Row[] = [
  [
    'new Coordinator()',
    'gracePeriodMs',
    'stopGracePeriodMs',
    () => new Coordinator(wrong({ gracePeriodMs: 1 })),
  ],
  ['child()', 'Name', 'name', (coord) => coord.child(wrong({ Name: 'child' }))],
  [
    'run()',
    'stopOnSignal',
    'stopOnSignals',
    () => Coordinator.run(body, wrong({ stopOnSignal: [] })),
  ],
  [
    'run()',
    'stopOnUncaugth',
    'stopOnUncaught',
    () => Coordinator.run(body, wrong({ stopOnUncaugth: true })),
  ],
  ['waitForStop()', 'signals', 'signal', (coord) => coord.waitForStop(0, wrong({ signals: [] }))],
  [
    'registerThread()',
    'nmae',
    'name',
    (coord) => coord.registerThread(Promise.resolve(), wrong({ nmae: '' })),
  ],
  ['start()', 'named', 'name', (coord) => coord.start(body, wrong({ named: '' }))],
  ['onStop()', 'names', 'name', (coord) => coord.onStop(body, wrong({ names: '' }))],
  ['spawn()', 'workerdata', 'workerData', (coord) => coord.spawn('', wrong({ workerdata: 1 }))],
  [
    'join()',
    'ignoreLiveThread',
    'ignoreLiveThreads',
    (coord) => coord.join(wrong({ ignoreLiveThread: true })),
  ],
  [
    'join([])',
    'stopGraceMs',
    'stopGracePeriodMs',
    (coord) => coord.join([], wrong({ stopGraceMs: 1 })),
  ],
  [
    'stopOnClose()',
    'event',
    'events',
    (coord) => coord.stopOnClose(process, wrong({ event: 'exit' })),
  ],
  ['new BoundedQueue()', 'capactiy', 'capacity', () => new BoundedQueue(wrong({ capactiy: 1 }))],
  ['enqueue()', 'timeout', 'timeoutMs', () => queue.enqueue(1, wrong({ timeout: 1 }))],
  ['enqueue()', 'Signal', 'signal', () => queue.enqueue(1, wrong({ Signal: 1 }))],
  ['dequeue()', 'timeout', 'timeoutMs', () => queue.dequeue(wrong({ timeout: 1 }))],
  ['dequeueMany()', 'mim', 'min', () => queue.dequeueMany(1, wrong({ mim: 1 }))],
  [
    'close()',
    'cancelPendingEnqueue',
    'cancelPendingEnqueues',
    () => queue.close(wrong({ cancelPendingEnqueue: true })),
  ],
  [
    'new QueueRunner()',
    'closeOps',
    'closeOp',
    () => new QueueRunner(queue, [body], wrong({ closeOps: body })),
  ],
  [
    'createThreads()',
    'coord',
    'coordinator',
    (coord) => new QueueRunner(queue, [body]).createThreads(wrong({ coord })),
  ],
  [
    'new LooperThread()',
    'targt',
    'target',
    (coord) => new LooperThread(coord, 1, wrong({ targt: body })),
  ],
  [
    'LooperThread.loop()',
    'missed',
    'missedTicks',
    (coord) => LooperThread.loop(coord, 1, body, wrong({ missed: 'skip' })),
  ],
];

describe('an option that does not exist', () => {
  it.each(unknown)('of %s is refused: %s', async (_, name, nearest, pass) => {
    const { error } = await refusal(new Coordinator(), () => pass(new Coordinator()));
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
    expect(error.message).toContain(
      `There is no option "options.${name}". Did you mean '${nearest}'?`,
    );
    expect(error.message).toMatch(/The options are '\w+'/);
  });

  it.each([
    ['threads', 'workers'],
    ['maxThreads', 'workers'],
    ['filename', 'module'],
    ['setupOfEachWorker', 'setup'],
  ])('may be a longer name, or that of another package: %s', async (name, meant) => {
    const pass = (): unknown => new LocalStrategy(wrong({ [name]: 1 }));
    const { error } = await refusal(new Coordinator(), pass);
    expect(error.message).toContain(`Did you mean '${meant}'?`);
  });

  it.each(['stop', 'abort', 'cancel'])(
    'a coordinator has no %s(): the error says what it has',
    (name) => {
      const coord = new Coordinator() as unknown as Record<string, () => void>;
      expect(() => coord[name]?.()).toThrow(`no ${name}(): call requestStop()`);
      expect(Object.keys(coord)).not.toContain(name);
    },
  );

  it('an endless capacity is refused with the reason', () => {
    expect(() => new BoundedQueue({ capacity: Number.POSITIVE_INFINITY })).toThrow(
      'the bound is what the queue is for',
    );
  });

  it('nor is a signal or a Map options', async () => {
    const wait = (options: object) => () => new Coordinator().waitForStop(1, wrong(options));
    for (const [options, remedy] of [
      [AbortSignal.abort(), ': pass it as { signal }'],
      [new Map([['signal', 1]]), 'Map'],
    ] as const) {
      const { error } = await refusal(new Coordinator(), wait(options));
      expect(error).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
      expect(error.message).toContain('The "options" argument must be an object with options. Rec');
      expect(error.message.endsWith(remedy)).toBe(true);
    }
  });

  it.each([
    ['a part of a name', { grace: 1 }, " Did you mean 'stopGracePeriodMs'?"],
    ['a name that is far from all', { timeoutMs: 1 }, ''],
    ['a name without a letter', { '': 1 }, ''],
  ])('is asked about if one is near: %s', async (_, options, question) => {
    const { error } = await refusal(new Coordinator(), () =>
      new Coordinator().join(wrong(options)),
    );
    expect(error.message).toBe(
      `There is no option "options.${Object.keys(options)[0]}".${question} The options are ` +
        "'stopGracePeriodMs', 'ignoreLiveThreads', 'stacks', 'warnSeenAfterMs', 'signal'",
    );
  });

  it('is refused by the coordinator in use as well, which is as it was', async () => {
    const coord = new Coordinator();
    await refusal(coord, () => coord.start(body, wrong({ nam: 'x' })));
    await refusal(coord, () => coord.onStop(body, wrong({ nam: 'x' })));
    await refusal(coord, () => coord.spawn('', wrong({ nam: 'x' })));
  });

  it.each([
    ['stopOnSignals', 'stopOnSignals()'],
    ['stopOnUncaught', 'stopOnUncaught()'],
    ['exitAfterStopMs', 'exitAfterStop()'],
  ])('but one of Coordinator.run is refused with the method: %s', async (name, method) => {
    const make = (): unknown => new Coordinator(wrong({ [name]: 1 }));
    const { error } = await refusal(new Coordinator(), make);
    expect(error).toMatchObject({ name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' });
    expect(error.message).toBe(
      `"options.${name}" is an option of Coordinator.run(). Of a coordinator, call ${method}`,
    );
  });

  it('but the name of a method is refused with the method', async () => {
    const make = (): unknown => new Coordinator(wrong({ exitAfterStop: 1 }));
    const { error } = await refusal(new Coordinator(), make);
    expect(error).toMatchObject({ name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' });
    expect(error.message).toBe(
      '"options.exitAfterStop" is a method of a coordinator: call exitAfterStop()',
    );
  });

  it('is not taken from Object.prototype, where a library may have put it', async () => {
    const coord = new Coordinator({ stopGracePeriodMs: 0 });
    void coord.start(() => new Promise(() => {}), { name: 'endless' });
    coord.requestStop();
    Object.assign(Object.prototype, { ignoreLiveThreads: true });
    const joined = coord.join().catch((error: unknown) => error);
    delete (Object.prototype as { ignoreLiveThreads?: true }).ignoreLiveThreads;
    expect(await joined).toBeInstanceOf(StragglersError);
  });

  it('is not taken from there beside options that are given', () => {
    Object.assign(Object.prototype, { name: 'of all objects' });
    const { name } = new Coordinator({ stopGracePeriodMs: 0 });
    const own = new Coordinator({ name: 'own' });
    delete (Object.prototype as { name?: string }).name;
    expect(name).toMatch(/^coordinator-/);
    expect(own.name).toBe('own');
  });

  it('is not taken from there for the requester of a stop', () => {
    const coord = new Coordinator();
    const inherited = { pid: 7, threadId: 7, signal: 'SIGKILL', native: true };
    Object.assign(Object.prototype, inherited);
    coord.requestStop();
    for (const key of Object.keys(inherited)) Reflect.deleteProperty(Object.prototype, key);
    const requester = coord.stopRecord?.requester;
    expect(requester).toMatchObject({ pid: process.pid, language: 'js' });
    expect(requester).not.toHaveProperty('signal');
  });

  it('is told from an option that is undefined', () => {
    expect(new Coordinator({ name: undefined }).name).toMatch(/^coordinator-/);
  });
});

describe('an option that a class of the program gives', () => {
  class Options {
    get name(): string {
      return 'by a getter';
    }
  }

  it.each<[string, () => unknown]>([
    ['new Coordinator()', () => new Coordinator(new Options())],
    ['child()', () => new Coordinator().child(new Options())],
    ['run()', () => Coordinator.run((coord) => coord, new Options())],
    ['new BoundedQueue()', () => new BoundedQueue(Object.assign(new Options(), { capacity: 1 }))],
  ])('is taken by %s', async (_, pass) => {
    expect(await pass()).toMatchObject({ name: 'by a getter' });
  });
});

describe('a value outside an enumeration', () => {
  const rows: [string, (coord: Coordinator, value: unknown) => unknown][] = [
    ['as', (coord, as) => coord.stopOnClose(process, wrong({ as }))],
    ['codec', (_, codec) => new BoundedQueue(wrong({ capacity: 1, codec }))],
    [
      'missedTicks',
      (coord, missedTicks) => new LooperThread(coord, 1, wrong({ target: body, missedTicks })),
    ],
  ];
  it.each(rows)('is refused: %s', async (name, pass) => {
    const coord = new Coordinator();
    const { error } = await refusal(coord, () => pass(coord, 'warning'));
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
    expect(error.message).toMatch(
      new RegExp(`^The "options\\.${name}" property must be one of '.+'\\. Received .*'warning'`),
    );
    const { error: ofType } = await refusal(coord, () => pass(coord, 5));
    expect(ofType).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
  });
});
