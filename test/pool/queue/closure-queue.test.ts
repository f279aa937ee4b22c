// ClosureQueue by itself, without workers: tests for each rule at the top of
// lib/pool/queue/closure-queue.ts, then random calls compared with a model. To replay:
// ALLSTOP_TEST_SEED=SEED npx vitest run test/pool/queue/closure-queue.test.ts

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ClosureQueue,
  type Dropped,
  type Era,
  type Place,
  type Queued,
} from '../../../lib/pool/queue/closure-queue.ts';
import { isPending, turn } from '../../support/gate.ts';
import { seed } from '../../support/seed.ts';

class Item implements Queued {
  place: Place = 'new';
  era: Era | undefined;
  readonly name: string;
  readonly isOwn: boolean;
  readonly bytes: number;
  isSuspect = false;
  readonly dropped: unknown[] = [];
  refusal: unknown;

  constructor(name: string, isOwn = false, bytes = 1) {
    this.name = name;
    this.isOwn = isOwn;
    this.bytes = bytes;
  }

  enter(): void {
    if (this.refusal !== undefined) throw this.refusal;
  }

  drop({ state, value }: Dropped): void {
    expect(this.place).toBe('out');
    this.dropped.push(`${state}: ${String(value)}`);
  }
}

function makeQueue(
  maxQueued = Number.POSITIVE_INFINITY,
  maxQueuedBytes = Number.POSITIVE_INFINITY,
) {
  let woken = 0;
  const queue = new ClosureQueue<Item>(maxQueued, maxQueuedBytes, {
    onWork: () => {
      woken += 1;
    },
    onFailure: (_failed, error) => () => `because of ${String(error)}`,
  });
  return {
    queue,
    woken: () => woken,
    put: (name: string, isOwn = false, bytes = 1) => {
      const item = new Item(name, isOwn, bytes);
      return { item, room: queue.put(item) };
    },
    take: () => queue.take()?.name,
  };
}

/** An item in flight. */
function flying({ queue, put }: ReturnType<typeof makeQueue>, name: string): Item {
  const { item } = put(name);
  expect(queue.take()).toBe(item);
  return item;
}

describe('what waits for room', () => {
  it.each([false, true])('gets it before what comes later in the other line', async (isOwn) => {
    const { queue, put } = makeQueue(Number.POSITIVE_INFINITY, 10);
    const { item: first } = put('first', !isOwn, 6);
    const { item: large, room } = put('large', isOwn, 8);
    const { item: small } = put('small', !isOwn, 1);
    expect([large.place, small.place]).toEqual(['waiting', 'waiting']);
    expect(queue.take()).toBe(first);
    await room;
    expect([large.place, small.place]).toEqual(['queued', 'queued']);
  });
});

describe('1: every closure is in one place', () => {
  it('waits, is in line, in flight, and out', async () => {
    const { queue, put } = makeQueue(1);
    const { item: first } = put('first');
    const { item: second, room } = put('second');
    expect([first.place, second.place]).toEqual(['queued', 'waiting']);
    queue.take();
    await room;
    expect([first.place, second.place]).toEqual(['in-flight', 'queued']);
    queue.end(first);
    expect([first.place, second.place]).toEqual(['out', 'queued']);
    expect([queue.queued, queue.inFlight.size]).toEqual([1, 0]);
  });

  it('tells whoever gets in that there is work', async () => {
    const { queue, put, woken } = makeQueue(1);
    const { item } = put('first');
    expect(woken()).toBe(1);
    const { room } = put('second');
    expect(woken()).toBe(1);
    queue.take();
    await room;
    expect(woken()).toBe(2);
    queue.putBack(item);
    expect(woken()).toBe(3);
  });

  it('takes a closure out of line, wherever it is there', () => {
    const { queue, put, take } = makeQueue();
    const [, second] = ['first', 'second', 'third'].map((name) => put(name).item);
    expect(queue.remove(second as Item)).toBe(true);
    expect(queue.queued).toBe(2);
    expect([take(), take(), take()]).toEqual(['first', 'third', undefined]);
    expect(second?.dropped).toEqual([]); // `remove` does not drop
  });

  it('does not remove what is in flight, or out', () => {
    const made = makeQueue();
    const item = flying(made, 'first');
    expect(made.queue.remove(item)).toBe(false);
    made.queue.end(item);
    expect(made.queue.remove(item)).toBe(false);
    expect([made.queue.queued, made.queue.inFlight.size]).toEqual([0, 0]);
  });

  it('rejects the call that waits for room for what is removed', async () => {
    const { queue, put } = makeQueue(1);
    put('first');
    const { item, room } = put('second');
    expect(queue.remove(item, 'too late')).toBe(true);
    await expect(room).rejects.toBe('too late');
    expect(item.place).toBe('out');
  });

  it('does not put in what refuses to get in, at once or when there is room', async () => {
    const { queue, put, take } = makeQueue(1);
    const [now, later] = ['now', 'later'].map((name) => new Item(name)) as [Item, Item];
    now.refusal = 'not now';
    await expect(queue.put(now)).rejects.toBe('not now');
    put('first');
    const room = queue.put(later);
    const { room: next } = put('next');
    later.refusal = 'not later';
    expect(take()).toBe('first');
    await expect(room).rejects.toBe('not later');
    await next;
    for (const { place, dropped } of [now, later]) expect([place, dropped]).toEqual(['out', []]);
    expect([take(), take()]).toEqual(['next', undefined]);
  });

  it('holds on to nothing that has left the line', async () => {
    const { queue } = makeQueue();
    const putAndLeave = (count: number): WeakRef<Item> => {
      const item = new Item(`${count}`);
      void queue.put(item);
      if (count % 3 === 0) queue.remove(item);
      else queue.end(queue.take() as Item);
      return new WeakRef(item);
    };
    const left = Array.from({ length: 100 }, (_, count) => putAndLeave(count));
    await turn();
    globalThis.gc?.();
    expect(left.filter((each) => each.deref() !== undefined)).toHaveLength(0);
    expect(queue.queued).toBe(0);
  });
});

describe('2: from the first failure until somebody knows, nothing is taken', () => {
  it('drops what is in line at once, with the failure as the cause', () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    const { item } = made.put('second');
    expect(made.queue.fail(running, 'broken')).toBe(true);
    expect(item.dropped).toEqual(['cancelled: because of broken']);
    expect(item.place).toBe('out');
    expect([made.queue.queued, made.take()]).toEqual([0, undefined]);
    expect(made.queue.hasFailed).toBe(true);
  });

  it('counts the first failure only', async () => {
    const made = makeQueue();
    const [first, second] = [flying(made, 'first'), flying(made, 'second')];
    expect(made.queue.fail(first, 'one')).toBe(true);
    expect(made.queue.fail(second, 'two')).toBe(false);
    await expect(made.queue.join()).rejects.toBe('one');
    await made.queue.join();
  });

  it('drops what is put back meanwhile', () => {
    const made = makeQueue();
    const [first, second] = [flying(made, 'first'), flying(made, 'second')];
    made.queue.fail(first, 'one');
    made.queue.putBack(second);
    expect(second.dropped).toEqual(['cancelled: because of one']);
    expect([made.queue.queued, made.queue.inFlight.size]).toEqual([0, 0]);
  });

  it('is an error whatever its value is', async () => {
    const made = makeQueue();
    made.queue.fail(flying(made, 'first'), undefined);
    expect(made.queue.hasFailed).toBe(true);
    await expect(made.queue.join()).rejects.toBe(undefined);
    expect(made.queue.hasFailed).toBe(false);
  });
});

describe('3: somebody is told when nothing is in flight any more, once', () => {
  it.each(['join', 'done'] as const)('%s waits for what is in flight', async (call) => {
    const made = makeQueue();
    const [first, second] = [flying(made, 'first'), flying(made, 'second')];
    made.queue.fail(first, 'broken');
    const told = made.queue[call]();
    expect(await isPending(told)).toBe(true);
    made.queue.end(second);
    await expect(told).rejects.toBe('broken');
    expect(await made.queue.done()).toBe(true);
  });

  it('put is told, and its closure is out', async () => {
    const made = makeQueue();
    made.queue.fail(flying(made, 'first'), 'broken');
    const { item, room } = made.put('second');
    await expect(room).rejects.toBe('broken');
    expect(item.place).toBe('out');
    expect(made.put('third').room).toBe(undefined);
  });

  it('of those who wait, the oldest is told, and the others go on', async () => {
    const made = makeQueue(1);
    const running = flying(made, 'first');
    made.put('second');
    const waiting = ['third', 'fourth'].map((name) => made.put(name));
    const joined = made.queue.join();
    made.queue.fail(running, 'broken');
    await expect(waiting[0]?.room).rejects.toBe('broken');
    await waiting[1]?.room;
    expect(await isPending(joined)).toBe(true);
    made.queue.end(made.queue.take() as Item);
    await joined;
  });

  it('of several joins exactly one is told', async () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    const joins = [made.queue.join(), made.queue.join(), made.queue.join()];
    made.queue.fail(running, 'broken');
    const results = await Promise.allSettled(joins);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  });
});

describe('4: who waits is served in order', () => {
  it('a join is a barrier for what is put in later', async () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    const joined = made.queue.join();
    const { item, room } = made.put('second');
    expect(item.place).toBe('waiting');
    expect(await isPending(room as Promise<void>)).toBe(true);
    made.queue.end(running);
    await joined;
    await room;
    expect(made.take()).toBe('second');
  });

  it('blocked puts get in by age, as room comes', async () => {
    const made = makeQueue(1);
    made.put('first');
    const order: string[] = [];
    for (const name of ['second', 'third']) void made.put(name).room?.then(() => order.push(name));
    expect(made.take()).toBe('first');
    await turn();
    expect(order).toEqual(['second']);
    expect(made.take()).toBe('second');
    await turn();
    expect(order).toEqual(['second', 'third']);
  });

  it('a join goes on when what it waited for is removed', async () => {
    const made = makeQueue();
    const { item } = made.put('first');
    const joined = made.queue.join();
    made.queue.remove(item);
    await joined;
  });

  it('who is behind a put that gives up is served', async () => {
    const made = makeQueue(1);
    const { item: first } = made.put('first');
    const { item: second, room } = made.put('second');
    const joined = made.queue.join();
    made.queue.end(made.queue.take() as Item);
    await room;
    made.queue.remove(second, 'given up');
    expect(first.place).toBe('out');
    await joined;
  });
});

describe('5: putting back needs no room', () => {
  it('all that is in flight comes back to a full line, before the others, in order', async () => {
    const made = makeQueue(2);
    const flight = ['a', 'b', 'c'].map((name) => flying(made, name));
    made.put('d');
    made.put('e');
    const { room } = made.put('f');
    const joined = made.queue.join();
    for (const item of flight.toReversed()) made.queue.putBack(item);
    expect([made.queue.queued, made.queue.inFlight.size]).toEqual([5, 0]);
    expect(await isPending(room as Promise<void>)).toBe(true);
    const order: string[] = [];
    for (let item = made.queue.take(); item !== undefined; item = made.queue.take()) {
      order.push(item.name);
      made.queue.end(item);
    }
    expect(order).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    await room;
    await joined;
  });
});

describe('6: what is tagged is a line of its own', () => {
  it('is served in order, for its worker only, and counted nowhere', async () => {
    const { queue } = makeQueue(1);
    const [one, two, other] = ['one', 'two', 'other'].map((name) => new Item(name)) as Item[];
    queue.putTagged(one as Item, 0);
    queue.putTagged(two as Item, 0);
    queue.putTagged(other as Item, 1);
    expect(queue.queued).toBe(0);
    expect(await queue.done()).toBe(true);
    expect([queue.takeTagged(0), queue.takeTagged(0), queue.takeTagged(0)]).toEqual([
      one,
      two,
      undefined,
    ]);
    expect([queue.takeTagged(1), queue.takeTagged(2)]).toEqual([other, undefined]);
    expect(one?.place).toBe('out');
  });

  it('is served while something has failed, and after the end', () => {
    const made = makeQueue();
    const [one, two] = ['one', 'two'].map((name) => new Item(name)) as [Item, Item];
    made.queue.putTagged(one, 0);
    made.queue.fail(flying(made, 'first'), 'broken');
    expect(made.queue.takeTagged(0)).toBe(one);
    made.queue.putTagged(two, 0);
    made.queue.close('closed', { state: 'failed', value: 'closed' });
    expect(made.queue.takeTagged(0)).toBe(two);
    expect([one.dropped, two.dropped]).toEqual([[], []]);
  });
});

describe('2: a closure that is its caller’s own', () => {
  it('is neither dropped nor kept from being taken by a failure', () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    const { item: own } = made.put('own', true);
    const { item: scheduled } = made.put('second');
    made.queue.fail(running, 'broken');
    expect([own.dropped, scheduled.dropped]).toEqual([[], ['cancelled: because of broken']]);
    expect(made.put('own too', true).room).toBe(undefined);
    expect([made.take(), made.take(), made.take()]).toEqual(['own', 'own too', undefined]);
    made.queue.putBack(own);
    expect([own.place, own.dropped]).toEqual(['queued', []]);
  });

  it('does not hold up the caller who receives the failure', async () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    const { item: own } = made.put('own', true);
    expect(made.queue.take()).toBe(own);
    made.queue.fail(running, 'broken');
    await expect(made.queue.join()).rejects.toBe('broken');
    const joined = made.queue.join();
    expect(await isPending(joined)).toBe(true);
    made.queue.end(own);
    await joined;
  });

  it('waits for room only, and receives no failure', async () => {
    const made = makeQueue(1);
    const running = flying(made, 'first');
    const joined = made.queue.join();
    expect(made.put('own', true).room).toBe(undefined);
    const { item, room } = made.put('own too', true);
    made.queue.fail(running, 'broken');
    await expect(joined).rejects.toBe('broken');
    expect(made.take()).toBe('own');
    await room;
    expect(item.place).toBe('queued');
  });

  it('gets room in its turn', async () => {
    const made = makeQueue(1);
    made.put('first');
    const order: string[] = [];
    for (const name of ['second', 'own', 'third']) {
      void made.put(name, name === 'own').room?.then(() => order.push(name));
    }
    for (let count = 0; count < 3; count += 1) {
      made.queue.end(made.queue.take() as Item);
      await turn();
    }
    expect(order).toEqual(['second', 'own', 'third']);
  });
});

describe('5: a suspect', () => {
  it('goes behind what is in line', () => {
    const made = makeQueue();
    const [suspect, innocent] = [flying(made, 'suspect'), flying(made, 'innocent')];
    made.put('first');
    suspect.isSuspect = true;
    made.queue.putBack(suspect);
    made.queue.putBack(innocent);
    made.put('last');
    const isNext: boolean[] = [];
    const order = Array.from({ length: 4 }, () => {
      isNext.push(made.queue.isSuspectNext());
      return made.take();
    });
    expect(order).toEqual(['innocent', 'first', 'suspect', 'last']);
    expect(isNext).toEqual([false, false, true, false]);
  });
});

describe('8: a join', () => {
  it('waits for what was put in before it, and not for own closures that keep coming', async () => {
    const made = makeQueue(1);
    const { item: first } = made.put('first', true);
    const { item: second } = made.put('second', true);
    const joined = made.queue.join();
    made.put('later', true);
    expect(made.queue.take()).toBe(first);
    made.queue.end(first);
    expect(await isPending(joined)).toBe(true);
    expect(made.queue.take()).toBe(second);
    made.queue.end(second);
    await joined;
    expect(made.take()).toBe('later');
  });

  it('that is given up receives nothing, and holds up nobody', async () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    let leave = (_error: unknown): void => {};
    const joined = made.queue.join((own) => {
      leave = own;
    });
    const { room } = made.put('second');
    leave('given up');
    leave('given up twice');
    await expect(joined).rejects.toBe('given up');
    await room;
    made.queue.fail(running, 'broken');
    await expect(made.queue.join()).rejects.toBe('broken');
  });
});

describe('refusing', () => {
  it('lets what was put in go on', async () => {
    const made = makeQueue(1);
    made.put('first');
    const { room } = made.put('second');
    made.queue.refuse('closing');
    await expect(made.put('third').room).rejects.toBe('closing');
    expect(made.queue.isEmpty).toBe(false);
    made.queue.end(made.queue.take() as Item);
    await room;
    made.queue.end(made.queue.take() as Item);
    expect(made.queue.isEmpty).toBe(true);
  });
});

describe('closing', () => {
  it('drops what is in line, and refuses what comes', async () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    const { item } = made.put('second');
    made.queue.close('closed', { state: 'failed', value: 'closed' });
    expect(item.dropped).toEqual(['failed: closed']);
    await expect(made.put('third').room).rejects.toBe('closed');
    const told = made.queue.done();
    expect(await isPending(told)).toBe(true);
    made.queue.putBack(running);
    expect(running.dropped).toEqual(['failed: closed']);
    await expect(told).rejects.toBe('closed');
    await expect(made.queue.join()).rejects.toBe('closed');
  });

  it('tells an error that nobody knows yet first', async () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    const other = flying(made, 'second');
    const joins = [made.queue.join(), made.queue.join()];
    made.queue.fail(running, 'broken');
    made.queue.close('closed', { state: 'failed', value: 'closed' });
    made.queue.close('closed twice', { state: 'cancelled', value: 'closed twice' });
    made.queue.end(other);
    const told = await Promise.allSettled(joins);
    expect(told.map((each) => each.status === 'rejected' && each.reason)).toEqual([
      'broken',
      'closed',
    ]);
  });
});

// ---------------------------------------------------------------- any order

type Call = {
  number: number;
  kind: 'put' | 'join' | 'done';
  name: string;
  wasBeforeClose?: boolean;
};

/** Closures that are their callers' own have names like o1, scheduled ones like c2. */
const isOwn = (name: string): boolean => name.startsWith('o');

/** The queue's rules, again, with lists of names. */
class Model {
  readonly max: number;
  line: string[] = [];
  flight: string[] = [];
  tagged: [string[], string[]] = [[], []];
  calls: Call[] = [];
  failure: string | undefined;
  isClosed = false;
  /** The results of calls and the drops of closures, in order. */
  told: string[] = [];
  made = 0;
  /** All closures ever made, so that `remove` is tried on those that are out, too. */
  names: string[] = [];

  constructor(max: number) {
    this.max = max;
  }

  note(error: string): boolean {
    if (this.failure !== undefined || this.isClosed) return false;
    this.failure = error;
    const dropped = this.line.filter((name) => !isOwn(name));
    this.line = this.line.filter(isOwn);
    for (const name of dropped) this.drop(name, `cancelled: because of ${error}`);
    return true;
  }

  drop(name: string, why: string): void {
    this.told.push(`${name} dropped: ${why}`);
  }

  isIdle(): boolean {
    return this.line.length === 0 && this.flight.length === 0;
  }

  /** Whether all closures that were made before the call of this number are out. */
  isOver(number: number): boolean {
    const waiting = this.calls.filter(({ kind }) => kind === 'put').map(({ name }) => name);
    const here = [...this.line, ...this.flight, ...waiting];
    return here.every((name) => Number(name.slice(1)) > number);
  }

  /** The result of a call that is the first of its kind; undefined if it has to wait. */
  answer({ kind, name, number, wasBeforeClose }: Call): string | undefined {
    if (this.failure !== undefined && !isOwn(name)) {
      if (this.flight.some((each) => !isOwn(each))) return undefined;
      const { failure } = this;
      this.failure = undefined;
      return `rejects: ${failure}`;
    }
    if (this.isClosed) {
      if (kind === 'put') return `rejects: ${isOwn(name) && wasBeforeClose ? 'dropped' : 'closed'}`;
      return this.flight.length === 0 ? 'rejects: closed' : undefined;
    }
    if (kind === 'done') return `resolves: ${this.isIdle()}`;
    if (kind === 'join') return this.isOver(number) ? 'resolves' : undefined;
    if (this.line.length >= this.max) return undefined;
    this.line.push(name);
    return 'resolves';
  }

  serve(): void {
    for (;;) {
      const firsts = [false, true].map((own) => this.calls.find(({ name }) => isOwn(name) === own));
      const served = this.calls.some((call) => {
        const answer = firsts.includes(call) ? this.answer(call) : undefined;
        if (answer === undefined) return false;
        this.calls = this.calls.filter((each) => each !== call);
        this.told.push(`call ${call.number} ${answer}`);
        return true;
      });
      if (!served) return;
    }
  }
}

class Real {
  readonly queue: ClosureQueue<Item>;
  readonly items = new Map<string, Item>();
  readonly told: string[] = [];

  constructor(max: number) {
    this.queue = new ClosureQueue<Item>(max, Number.POSITIVE_INFINITY, {
      onWork: () => {},
      onFailure: (_failed, error) => () => `because of ${String(error)}`,
    });
  }

  make(name: string): Item {
    const { told } = this;
    const item = new (class extends Item {
      override drop(outcome: Dropped): void {
        super.drop(outcome);
        told.push(`${name} dropped: ${outcome.state}: ${String(outcome.value)}`);
      }
    })(name, isOwn(name));
    this.items.set(name, item);
    return item;
  }

  item(name: string): Item {
    return this.items.get(name) as Item;
  }

  hear(number: number, call: Promise<boolean | void>): void {
    call.then(
      (value) =>
        this.told.push(`call ${number} resolves${value === undefined ? '' : `: ${String(value)}`}`),
      (error: unknown) => this.told.push(`call ${number} rejects: ${String(error)}`),
    );
  }
}

const picked = (from: readonly string[], at: number): string => from[at % from.length] as string;
const without = (from: string[], name: string): string[] => from.filter((each) => each !== name);

type Step = {
  can?(model: Model): boolean;
  /** Makes the same call on the model and the queue; `at` picks one of several closures. */
  run(model: Model, real: Real, at: number): void;
};

const inFlight = (model: Model): boolean => model.flight.length > 0;

const steps: Record<string, Step> = {
  put: {
    run(model, real, at) {
      const number = ++model.made;
      const name = `${at % 3 === 0 ? 'o' : 'c'}${number}`;
      model.names.push(name);
      model.calls.push({ number, kind: 'put', name });
      model.serve();
      const room = real.queue.put(real.make(name));
      // `put` returns undefined if the closure is queued at once.
      expect(room === undefined).toBe(model.line.includes(name));
      real.hear(number, room ?? Promise.resolve());
    },
  },
  take: {
    run(model, real) {
      const name = model.isClosed ? undefined : model.line.shift();
      if (name !== undefined) model.flight.push(name);
      model.serve();
      expect(real.queue.take()?.name).toBe(name);
    },
  },
  end: {
    can: inFlight,
    run(model, real, at) {
      const name = picked(model.flight, at);
      model.flight = without(model.flight, name);
      model.serve();
      real.queue.end(real.item(name));
    },
  },
  fail: {
    can: inFlight,
    run(model, real, at) {
      const name = picked(model.flight, at);
      model.flight = without(model.flight, name);
      if (isOwn(name)) {
        model.serve();
        real.queue.end(real.item(name));
        return;
      }
      const isFirst = model.note(`${name} failed`);
      model.serve();
      expect(real.queue.fail(real.item(name), `${name} failed`)).toBe(isFirst);
    },
  },
  putBack: {
    can: inFlight,
    run(model, real, at) {
      const name = picked(model.flight, at);
      model.flight = without(model.flight, name);
      if (model.isClosed) model.drop(name, 'failed: dropped');
      else if (model.failure !== undefined && !isOwn(name)) {
        model.drop(name, `cancelled: because of ${model.failure}`);
      } else model.line.unshift(name);
      model.serve();
      real.queue.putBack(real.item(name));
    },
  },
  putAllBack: {
    can: inFlight,
    run(model, real) {
      while (inFlight(model)) steps['putBack']?.run(model, real, model.flight.length - 1);
    },
  },
  remove: {
    can: ({ names }) => names.length > 0,
    run(model, real, at) {
      const name = picked(model.names, at);
      const call = model.calls.find((each) => each.name === name);
      const isThere = call !== undefined || model.line.includes(name);
      model.line = without(model.line, name);
      model.calls = model.calls.filter((each) => each !== call);
      if (call !== undefined) model.told.push(`call ${call.number} rejects: given up`);
      if (isThere) model.serve();
      expect(real.queue.remove(real.item(name), 'given up')).toBe(isThere);
    },
  },
  join: {
    run(model, real) {
      const number = ++model.made;
      model.calls.push({ number, kind: 'join', name: '' });
      model.serve();
      real.hear(number, real.queue.join());
    },
  },
  done: {
    run(model, real) {
      const number = ++model.made;
      // Without a failure `done` answers at once, also while other calls wait.
      if (model.failure === undefined && !model.isClosed) {
        model.told.push(`call ${number} resolves: ${model.isIdle()}`);
      } else {
        model.calls.push({ number, kind: 'done', name: '' });
        model.serve();
      }
      real.hear(number, real.queue.done());
    },
  },
  close: {
    run(model, real) {
      if (!model.isClosed) {
        model.isClosed = true;
        for (const call of model.calls) call.wasBeforeClose = true;
        for (const name of model.line.splice(0)) model.drop(name, 'failed: dropped');
      }
      model.serve();
      real.queue.close('closed', { state: 'failed', value: 'dropped' });
    },
  },
  putTagged: {
    run(model, real, at) {
      const name = `t${++model.made}`;
      model.tagged[at % 2]?.push(name);
      real.queue.putTagged(real.make(name), at % 2);
    },
  },
  takeTagged: {
    run(model, real, at) {
      expect(real.queue.takeTagged(at % 2)?.name).toBe(model.tagged[at % 2]?.shift());
    },
  },
};

function places(real: Real, place: Place): string[] {
  return [...real.items.values()].filter((item) => item.place === place).map(({ name }) => name);
}

async function compare(model: Model, real: Real): Promise<void> {
  await turn();
  expect(real.told.toSorted()).toEqual(model.told.toSorted());
  const calls = (told: readonly string[]): string[] =>
    told.filter((each) => each.startsWith('call'));
  expect(calls(real.told)).toEqual(calls(model.told)); // in order
  const { queue } = real;
  expect(queue.hasFailed).toBe(model.failure !== undefined);
  expect([queue.queued, queue.inFlight.size]).toEqual([model.line.length, model.flight.length]);
  const waiting = model.calls.flatMap(({ kind, name }) => (kind === 'put' ? [name] : []));
  const tagged = model.tagged.flat();
  expect(places(real, 'queued').toSorted()).toEqual([...model.line, ...tagged].toSorted());
  expect(places(real, 'in-flight').toSorted()).toEqual(model.flight.toSorted());
  expect(places(real, 'waiting').toSorted()).toEqual(waiting.toSorted());
  for (const item of real.items.values()) expect(item.dropped.length).toBeLessThanOrEqual(1);
}

class Command implements fc.AsyncCommand<Model, Real> {
  readonly name: string;
  readonly at: number;

  constructor(name: string, at: number) {
    this.name = name;
    this.at = at;
  }

  check(model: Readonly<Model>): boolean {
    return steps[this.name]?.can?.(model) ?? true;
  }

  async run(model: Model, real: Real): Promise<void> {
    steps[this.name]?.run(model, real, this.at);
    await compare(model, real);
  }

  toString(): string {
    return `${this.name}(${this.at})`;
  }
}

const command = (name: string): fc.Arbitrary<Command> =>
  fc.nat(1_000).map((at) => new Command(name, at));

// Usual calls are frequent, and `close`, after which little can happen, is rare.
const often = ['put', 'put', 'put', 'take', 'take', 'end', 'end', 'putBack', 'join', 'remove'];
const commands = [...often, ...often, ...often, ...Object.keys(steps)].map(command);

describe(`with the seed ${seed}`, () => {
  async function run(numRuns: number): Promise<void> {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.commands(commands, { maxCommands: 120, size: 'max' }),
        async (max, cmds) => {
          const model = new Model(max);
          const real = new Real(max);
          await fc.asyncModelRun(() => ({ model, real }), cmds);
          // When all closures have ended, no call waits any more.
          while (model.line.length + model.flight.length > 0) {
            await new Command(inFlight(model) ? 'end' : 'take', 0).run(model, real);
          }
          expect(model.calls).toEqual([]);
        },
      ),
      { seed, numRuns },
    );
  }

  const name = 'does in any order what the model does, and never leaves anybody waiting, %i times';
  it.each([50])(name, { tags: 'property' }, run);
  it.each([400])(name, { tags: ['property', 'long'] }, run);
});
