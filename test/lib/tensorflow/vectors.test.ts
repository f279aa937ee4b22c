// What TensorFlow's own Coordinator did, replayed on ours: scripts/record-tensorflow-vectors.py
// ran its coordinator.py and recorded the fixture. The two agree in everything but DIFFERENCES.
//
// What a sequence does `meanwhile`, once a wait or a join has begun, is replayed in the same turn
// of the event loop, in which a join never calls a live thread a straggler: our join can then not
// settle between two of these steps, nor could TensorFlow's when it was recorded.

import { readFileSync } from 'node:fs';
import {
  AllstopError,
  CancelledError,
  Coordinator,
  OutOfRangeError,
  StragglersError,
} from 'allstop';
import { describe, expect, it } from 'vitest';

type Raised =
  | string /* one of the sequence's errors, itself */
  | { type: string; message?: string; code?: string };
type Step = {
  op: string;
  error?: string;
  thread?: string;
  threads?: string[];
  timeout_ms?: number;
  grace_ms?: number;
  ignore_live_threads?: boolean;
  meanwhile?: Step[];
  // What came of it:
  returned?: unknown;
  raised?: Raised | undefined;
  should_stop: boolean;
  joined: boolean;
};
type Outcome = Pick<Step, 'returned' | 'raised'>;
type Vector = {
  name: string;
  clean: string[] | null;
  errors: Record<string, string>;
  threads: Record<string, 'alive' | 'finished' | 'never started'>;
  steps: Step[];
};

const { vectors } = JSON.parse(
  readFileSync(new URL('../../fixtures/tensorflow-vectors.json', import.meta.url), 'utf8'),
) as { vectors: Vector[] };

/**
 * Where ours differs on purpose, and by which rule. Some rules show in no vector: later errors are
 * kept (`suppressed`), ended threads leave the registry at once, a join notices at once that its
 * threads have ended (TensorFlow's looks once a second), joining oneself is refused.
 */
const DIFFERENCES: {
  rule: string;
  sequence?: string; // only in this one
  steps?: Record<number, Partial<Step>>; // by index
  everywhere?: (step: Step) => Partial<Step>;
}[] = [
  {
    rule: 'Stragglers have an error class of their own.',
    everywhere: ({ raised }) =>
      typeof raised === 'object' && raised.type === 'RuntimeError'
        ? { raised: { ...raised, type: 'StragglersError' } }
        : {},
  },
  {
    rule: 'Any value but undefined and null is an error, falsy ones too.',
    sequence: 'a falsy error',
    steps: { 1: { raised: 'e1' }, 2: { raised: 'e1' } },
  },
  {
    rule: 'Threads registered while a join waits stay registered for the next join.',
    sequence: 'a thread registered while a join waits',
    steps: {
      3: {
        raised: {
          type: 'StragglersError',
          message: 'Coordinator stopped with threads still running: T2',
        },
      },
    },
  },
  {
    rule: 'Negative durations are refused, and a refused call changes nothing.',
    sequence: 'a negative timeout polls',
    steps: {
      0: { returned: undefined, raised: { type: 'RangeError', code: 'ERR_OUT_OF_RANGE' } },
      2: { returned: undefined, raised: { type: 'RangeError', code: 'ERR_OUT_OF_RANGE' } },
    },
  },
  {
    rule: 'Negative durations are refused, and a refused call changes nothing.',
    sequence: 'a negative grace',
    steps: { 2: { raised: { type: 'RangeError', code: 'ERR_OUT_OF_RANGE' }, joined: false } },
  },
];

function expected(vector: Vector): Step[] {
  const differences = DIFFERENCES.filter(
    ({ sequence }) => (sequence ?? vector.name) === vector.name,
  );
  return vector.steps.map((step, index) =>
    Object.assign(
      {},
      step,
      ...differences.map(({ steps, everywhere }) => steps?.[index] ?? everywhere?.(step)),
    ),
  );
}

class ValueError extends Error {}
class LookupError extends Error {}
class KeyError extends LookupError {}
class StopIteration extends Error {}
class KeyboardInterrupt extends Error {}

const CLASSES: Record<string, new (message: string) => Error> = {
  ValueError,
  LookupError,
  KeyError,
  StopIteration,
  KeyboardInterrupt,
  OutOfRangeError,
  CancelledError,
  OpError: AllstopError,
  RuntimeError: RangeError,
};

function classFor(pythonType: string): new (message: string) => Error {
  const ours = CLASSES[pythonType];
  if (ours === undefined) throw new Error(`No class of ours for ${pythonType}`);
  return ours;
}

function errorFor(name: string, pythonType: string): unknown {
  if (pythonType === 'FalsyError') return '';
  // Python's is no Exception; here it is no Error, which can be thrown just as well.
  if (pythonType === 'SystemExit') return { exit: name };
  return new (classFor(pythonType))(name);
}

class GatedThread {
  readonly name: string;
  readonly #ended: Promise<void>;
  #end!: () => void;

  constructor(name: string, state: Vector['threads'][string]) {
    this.name = name;
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    // A joinable cannot be "not yet started". TensorFlow counts such a thread as one that has
    // ended, so it is one that has ended.
    if (state !== 'alive') this.release();
  }

  join(): Promise<void> {
    return this.#ended;
  }

  release(): void {
    this.#end();
  }
}

class Replay {
  readonly #coordinator: Coordinator;
  readonly #blocking: boolean;
  readonly #errors: Map<string, unknown>;
  readonly #threads: Map<string, GatedThread>;

  constructor({ clean, errors, threads }: Vector, form: 'blocking' | 'asynchronous') {
    this.#blocking = form === 'blocking';
    const byName = !this.#blocking; // clean types may be given as classes or as their names
    this.#coordinator = new Coordinator(
      clean === null
        ? {}
        : { cleanStopErrors: clean.map((type) => (byName ? classFor(type).name : classFor(type))) },
    );
    this.#errors = new Map(
      Object.entries(errors).map(([name, type]) => [name, errorFor(name, type)]),
    );
    this.#threads = new Map(
      Object.entries(threads).map(([name, state]) => [name, new GatedThread(name, state)]),
    );
  }

  async run(steps: Step[]): Promise<Step[]> {
    const done: Step[] = [];
    for (const step of steps) done.push(await this.#do(step));
    for (const thread of this.#threads.values()) thread.release();
    return done;
  }

  async #do(step: Step): Promise<Step> {
    let meanwhile: Step[] | undefined;
    let outcome: Outcome;
    try {
      const result = this.#perform(step, this.#blocking && step.meanwhile === undefined);
      meanwhile = step.meanwhile?.map((inner) => this.#doNow(inner));
      outcome = { returned: await result };
    } catch (error) {
      outcome = { raised: this.#symbol(error) };
    }
    return this.#record({ ...step, ...(meanwhile && { meanwhile }) }, outcome);
  }

  #doNow(step: Step): Step {
    try {
      return this.#record(step, { returned: this.#perform(step, true) });
    } catch (error) {
      return this.#record(step, { raised: this.#symbol(error) });
    }
  }

  #record(step: Step, { returned, raised }: Outcome): Step {
    return {
      ...step,
      returned,
      raised,
      should_stop: this.#coordinator.shouldStop(),
      joined: this.#coordinator.joined,
    };
  }

  /** The sequence's own name for what was thrown: the identical value, not one that looks like it. */
  #symbol(thrown: unknown): Raised {
    for (const [name, error] of this.#errors) if (Object.is(error, thrown)) return name;
    if (thrown instanceof StragglersError) {
      // TensorFlow joins a set, which has no order. The recorded names are sorted.
      const [text, names] = thrown.message.split(': ');
      return {
        type: 'StragglersError',
        message: `${text}: ${names?.split(' ').toSorted().join(' ')}`,
      };
    }
    if (thrown instanceof RangeError && 'code' in thrown)
      return { type: 'RangeError', code: String(thrown.code) };
    throw thrown;
  }

  /** What the method returned, a promise perhaps. */
  #perform(step: Step, blocking: boolean): unknown {
    const coordinator = this.#coordinator;
    switch (step.op) {
      case 'request_stop':
        return step.error === undefined
          ? coordinator.requestStop()
          : coordinator.requestStop(this.#errors.get(step.error));
      case 'stop_on_exception': {
        const body = () => {
          if (step.error !== undefined) throw this.#errors.get(step.error);
        };
        return blocking
          ? coordinator.stopOnException(body)
          : coordinator.stopOnException(async () => body());
      }
      case 'raise_requested_exception':
        return coordinator.raiseRequestedException();
      case 'should_stop':
        return coordinator.shouldStop();
      case 'clear_stop':
        return coordinator.clearStop();
      case 'wait_for_stop':
        return blocking
          ? coordinator.waitForStopSync(step.timeout_ms)
          : coordinator.waitForStop(step.timeout_ms);
      case 'register_thread':
        return coordinator.registerThread(this.#thread(step.thread));
      case 'release':
        return this.#thread(step.thread).release();
      case 'join': {
        const options = {
          ...(step.grace_ms !== undefined && { stopGracePeriodMs: step.grace_ms }),
          ...(step.ignore_live_threads !== undefined && {
            ignoreLiveThreads: step.ignore_live_threads,
          }),
        };
        return step.threads === undefined
          ? coordinator.join(options)
          : coordinator.join(
              step.threads.map((name) => this.#thread(name)),
              options,
            );
      }
      default:
        throw new Error(`No such operation: ${step.op}`);
    }
  }

  #thread(name: string | undefined): GatedThread {
    const thread = this.#threads.get(name ?? '');
    if (thread === undefined) throw new Error(`No such thread: ${name}`);
    return thread;
  }
}

/** They say nothing, and would fill the report of a failure. */
function withoutUndefined(steps: Step[]): unknown {
  return JSON.parse(JSON.stringify(steps));
}

describe.each(['blocking', 'asynchronous'] as const)(
  'agrees with TensorFlow, in the %s forms:',
  (form) => {
    it.each(vectors)('$name', async (vector) => {
      const replayed = await new Replay(vector, form).run(vector.steps);
      expect(withoutUndefined(replayed)).toEqual(withoutUndefined(expected(vector)));
    });
  },
);

it.each(DIFFERENCES)('differs: $rule', ({ sequence, steps, everywhere }) => {
  const affected = vectors
    .filter(({ name }) => (sequence ?? name) === name)
    .flatMap((vector) => vector.steps);
  if (steps)
    for (const [index, ours] of Object.entries(steps))
      expect(affected[Number(index)]).not.toMatchObject(ours);
  if (everywhere)
    expect(affected.some((step) => Object.keys(everywhere(step)).length > 0)).toBe(true);
});
