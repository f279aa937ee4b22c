// CallQueue and, over it, CallGroup by themselves, without workers: tests for each rule at the top
// of lib/pool/queue/call-queue.ts and lib/cluster/calls/call-group.ts, then random calls compared with a
// model. To replay:
// ALLSTOP_TEST_SEED=SEED npx vitest run test/pool/queue/call-queue.test.ts

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallGroup, type Grouped } from '../../../lib/cluster/calls/call-group.ts';
import { Placement } from '../../../lib/pool/queue/call-lines.ts';
import {
  CallQueue,
  next as following,
  type Life,
  type Outcome,
  outcomeOf,
  type Place,
} from '../../../lib/pool/queue/call-queue.ts';
import { isPending, turn } from '../../support/gate.ts';
import { seed } from '../../support/seed.ts';

class Item implements Grouped {
  life: Life = { at: 'new' };
  readonly work: { readonly name: string };
  readonly isOwn: boolean;
  readonly isHeld = false;
  readonly bytes: number;
  readonly placement: Placement | undefined;
  isSuspect = false;
  /** Left the queue before it was in flight. */
  readonly dropped: unknown[] = [];
  refusal: unknown;

  constructor(name: string, isOwn = false, bytes = 1, placement?: Placement) {
    this.placement = placement;
    this.work = { name };
    this.isOwn = isOwn;
    this.bytes = bytes;
  }

  get name(): string {
    return this.work.name;
  }

  get place(): Place {
    return this.life.at;
  }

  enter(): void {
    if (this.refusal !== undefined) throw this.refusal;
  }

  become(life: Life): void {
    const before = outcomeOf(this.life);
    this.life = following(this.life, life);
    const outcome = outcomeOf(this.life);
    if (this.place !== 'out' || outcome === undefined || before !== undefined) return;
    const { state, value } = outcome;
    if (value === ENDED || value === REMOVED) return;
    this.dropped.push(`${state}: ${value instanceof Error ? value.message : String(value)}`);
  }

  tell(): void {}
}

const ENDED = 'ended';
const REMOVED = 'given up';

const because = (name: string, error: string): string =>
  `'${name}' was cancelled because ${error}. Please reschedule it`;

class Both {
  readonly queue: CallQueue<Item>;
  readonly group: CallGroup<Item>;
  woken = 0;

  constructor(maxQueued: number, maxQueuedBytes: number) {
    this.queue = new CallQueue<Item>(maxQueued, maxQueuedBytes, {
      onWork: () => {
        this.woken += 1;
      },
      onOut: (item) => this.group.left(item),
    });
    this.group = new CallGroup<Item>(this.queue, () => {});
  }

  get hasFailed(): boolean {
    return this.group.whyNot(new Item('any')) !== undefined;
  }

  put(item: Item): Promise<void> | undefined {
    if (!item.isOwn) return this.group.put(item);
    let enter = (): void => {};
    let refuse: (error: unknown) => void = enter;
    try {
      const waiter = { entered: () => enter(), refused: (error: unknown) => refuse(error) };
      if (this.queue.put(item, () => waiter)) return undefined;
    } catch (error) {
      return Promise.reject(error);
    }
    return new Promise((resolve, reject) => {
      enter = resolve;
      refuse = reject;
    });
  }

  end(item: Item): void {
    this.queue.out(item, { state: 'ready', value: ENDED });
  }

  /** What the rules do with the error of a function. */
  fail(item: Item, value: unknown): void {
    const outcome: Outcome = { state: 'failed', value };
    item.become({ at: 'in-flight', outcome });
    if (!item.isOwn) this.group.failed(item, value);
    this.queue.out(item, outcome);
  }

  /** What the rules do with a call that comes back. */
  putBack(item: Item): void {
    const over = this.queue.end?.dropped ?? (item.isOwn ? undefined : this.group.whyNot(item));
    if (over === undefined) this.queue.putBack(item);
    else this.queue.out(item, over);
  }

  /** What the rules do for a caller who gives up. */
  remove(item: Item, value: unknown = REMOVED): boolean {
    if (item.place === 'in-flight' || item.place === 'out') return false;
    this.queue.out(item, { state: 'cancelled', value });
    return true;
  }
}

function makeQueue(
  maxQueued = Number.POSITIVE_INFINITY,
  maxQueuedBytes = Number.POSITIVE_INFINITY,
) {
  const both = new Both(maxQueued, maxQueuedBytes);
  return {
    both,
    queue: both.queue,
    group: both.group,
    put: (name: string, isOwn = false, bytes = 1, placement?: Placement) => {
      const item = new Item(name, isOwn, bytes, placement);
      return { item, room: both.put(item) };
    },
    take: () => both.queue.take()?.name,
  };
}

/** An item in flight. */
function flying({ queue, put }: ReturnType<typeof makeQueue>, name: string): Item {
  const { item } = put(name);
  expect(queue.take()).toBe(item);
  return item;
}

const closed = { refusal: 'closed', dropped: { state: 'failed', value: 'closed' } } as const;

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

it('refuses any number of calls that wait for room and cannot enter', async () => {
  const { queue, put } = makeQueue(1);
  put('first');
  const rooms = Array.from({ length: 20_000 }, () => {
    const { item, room } = put('moved');
    item.refusal = 'moved before';
    return Promise.resolve(room).catch((reason: unknown) => reason);
  });
  queue.take();
  expect(new Set(await Promise.all(rooms))).toEqual(new Set(['moved before']));
});

describe('1: every call is in one place', () => {
  it('waits, is in line, in flight, and out', async () => {
    const { both, queue, put } = makeQueue(1);
    const { item: first } = put('first');
    const { item: second, room } = put('second');
    expect([first.place, second.place]).toEqual(['queued', 'waiting']);
    queue.take();
    await room;
    expect([first.place, second.place]).toEqual(['in-flight', 'queued']);
    both.end(first);
    expect([first.place, second.place]).toEqual(['out', 'queued']);
    expect([queue.queued, queue.count('in-flight')]).toEqual([1, 0]);
  });

  it('tells whoever gets in that there is work', async () => {
    const { both, queue, put } = makeQueue(1);
    const { item } = put('first');
    expect(both.woken).toBe(1);
    const { room } = put('second');
    expect(both.woken).toBe(1);
    queue.take();
    await room;
    expect(both.woken).toBe(2);
    both.putBack(item);
    expect(both.woken).toBe(3);
  });

  it('takes a call out of line, wherever it is there', () => {
    const { both, queue, put, take } = makeQueue();
    const [, second] = ['first', 'second', 'third'].map((name) => put(name).item);
    expect(both.remove(second as Item)).toBe(true);
    expect(queue.queued).toBe(2);
    expect([take(), take(), take()]).toEqual(['first', 'third', undefined]);
    expect(second?.dropped).toEqual([]); // `remove` does not drop
  });

  it('does not remove what is in flight, or out', () => {
    const made = makeQueue();
    const item = flying(made, 'first');
    expect(made.both.remove(item)).toBe(false);
    made.both.end(item);
    expect(made.both.remove(item)).toBe(false);
    expect([made.queue.queued, made.queue.count('in-flight')]).toEqual([0, 0]);
  });

  it('rejects the call that waits for room for what is removed', async () => {
    const { both, put } = makeQueue(1);
    put('first');
    const { item, room } = put('second');
    expect(both.remove(item, 'too late')).toBe(true);
    await expect(room).rejects.toBe('too late');
    expect(item.place).toBe('out');
  });

  it('does not put in what refuses to get in, at once or when there is room', async () => {
    const { both, put, take } = makeQueue(1);
    const [now, later] = ['now', 'later'].map((name) => new Item(name)) as [Item, Item];
    now.refusal = 'not now';
    await expect(both.put(now)).rejects.toBe('not now');
    put('first');
    const room = both.put(later);
    const { room: next } = put('next');
    later.refusal = 'not later';
    expect(take()).toBe('first');
    await expect(room).rejects.toBe('not later');
    await next;
    for (const { place, dropped } of [now, later]) expect([place, dropped]).toEqual(['out', []]);
    expect([take(), take()]).toEqual(['next', undefined]);
  });

  it('holds on to nothing that has left the line', async () => {
    const { both, queue } = makeQueue();
    const putAndLeave = (count: number): WeakRef<Item> => {
      const item = new Item(`${count}`);
      void both.put(item);
      if (count % 3 === 0) both.remove(item);
      else both.end(queue.take() as Item);
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
    made.both.fail(running, 'broken');
    expect(item.dropped).toEqual([`cancelled: ${because('second', "'first' failed: broken")}`]);
    expect(item.place).toBe('out');
    expect([made.queue.queued, made.take()]).toEqual([0, undefined]);
    expect(made.both.hasFailed).toBe(true);
  });

  it('counts the first failure only', async () => {
    const made = makeQueue();
    const [first, second] = [flying(made, 'first'), flying(made, 'second')];
    made.both.fail(first, 'one');
    made.both.fail(second, 'two');
    await expect(made.group.join()).rejects.toBe('one');
    await made.group.join();
  });

  it('drops what is put back meanwhile', () => {
    const made = makeQueue();
    const [first, second] = [flying(made, 'first'), flying(made, 'second')];
    made.both.fail(first, 'one');
    made.both.putBack(second);
    expect(second.dropped).toEqual([`cancelled: ${because('second', "'first' failed: one")}`]);
    expect([made.queue.queued, made.queue.count('in-flight')]).toEqual([0, 0]);
  });

  it('is an error whatever its value is', async () => {
    const made = makeQueue();
    made.both.fail(flying(made, 'first'), undefined);
    expect(made.both.hasFailed).toBe(true);
    await expect(made.group.join()).rejects.toBe(undefined);
    expect(made.both.hasFailed).toBe(false);
  });
});

describe('3: somebody is told when nothing is in flight any more, once', () => {
  it.each(['join', 'done'] as const)('%s waits for what is in flight', async (call) => {
    const made = makeQueue();
    const [first, second] = [flying(made, 'first'), flying(made, 'second')];
    made.both.fail(first, 'broken');
    const told = made.group[call]();
    expect(await isPending(told)).toBe(true);
    made.both.end(second);
    await expect(told).rejects.toBe('broken');
    expect(await made.group.done()).toBe(true);
  });

  it('put is told, and its call is out', async () => {
    const made = makeQueue();
    made.both.fail(flying(made, 'first'), 'broken');
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
    const joined = made.group.join();
    made.both.fail(running, 'broken');
    await expect(waiting[0]?.room).rejects.toBe('broken');
    await waiting[1]?.room;
    expect(await isPending(joined)).toBe(true);
    made.both.end(made.queue.take() as Item);
    await joined;
  });

  it('of several joins exactly one is told', async () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    const joins = [made.group.join(), made.group.join(), made.group.join()];
    made.both.fail(running, 'broken');
    const results = await Promise.allSettled(joins);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  });
});

describe('4: who waits is served in order', () => {
  it('a join is a barrier for what is put in later', async () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    const joined = made.group.join();
    const { item, room } = made.put('second');
    expect(item.place).toBe('new');
    expect(await isPending(room as Promise<void>)).toBe(true);
    made.both.end(running);
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
    const joined = made.group.join();
    made.both.remove(item);
    await joined;
  });

  it('who is behind a put that gives up is served', async () => {
    const made = makeQueue(1);
    const { item: first } = made.put('first');
    const { item: second, room } = made.put('second');
    const joined = made.group.join();
    made.both.end(made.queue.take() as Item);
    await room;
    made.both.remove(second, 'given up');
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
    const joined = made.group.join();
    for (const item of flight.toReversed()) made.both.putBack(item);
    expect([made.queue.queued, made.queue.count('in-flight')]).toEqual([5, 0]);
    expect(await isPending(room as Promise<void>)).toBe(true);
    const order: string[] = [];
    for (let item = made.queue.take(); item !== undefined; item = made.queue.take()) {
      order.push(item.name);
      made.both.end(item);
    }
    expect(order).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    await room;
    await joined;
  });
});

describe('2: a call that is its caller’s own', () => {
  it('is neither dropped nor kept from being taken by a failure', () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    const { item: own } = made.put('own', true);
    const { item: scheduled } = made.put('second');
    made.both.fail(running, 'broken');
    expect([own.dropped, scheduled.dropped]).toEqual([
      [],
      [`cancelled: ${because('second', "'first' failed: broken")}`],
    ]);
    expect(made.put('own too', true).room).toBe(undefined);
    expect([made.take(), made.take(), made.take()]).toEqual(['own', 'own too', undefined]);
    made.both.putBack(own);
    expect([own.place, own.dropped]).toEqual(['queued', []]);
  });

  it('does not hold up the caller who receives the failure', async () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    const { item: own } = made.put('own', true);
    expect(made.queue.take()).toBe(own);
    made.both.fail(running, 'broken');
    await expect(made.group.join()).rejects.toBe('broken');
    const joined = made.group.join();
    expect(await isPending(joined)).toBe(true);
    made.both.end(own);
    await joined;
  });

  it('waits for room only, and receives no failure', async () => {
    const made = makeQueue(1);
    const running = flying(made, 'first');
    const joined = made.group.join();
    expect(made.put('own', true).room).toBe(undefined);
    const { item, room } = made.put('own too', true);
    made.both.fail(running, 'broken');
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
      made.both.end(made.queue.take() as Item);
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
    made.both.putBack(suspect);
    made.both.putBack(innocent);
    made.put('last');
    const isNext: boolean[] = [];
    const order = Array.from({ length: 4 }, () => {
      isNext.push(made.queue.next()?.isSuspect === true);
      return made.take();
    });
    expect(order).toEqual(['innocent', 'first', 'suspect', 'last']);
    expect(isNext).toEqual([false, false, true, false]);
  });
});

describe('6: a worker', () => {
  it('takes the first call that it may run, and is asked once what it may run', () => {
    const { queue, put } = makeQueue();
    for (let gb = 100; gb > 0; gb -= 1) {
      put(`${gb}`, true, 1, Placement.of(undefined, { gb }));
    }
    let asked = 0;
    const abilities = () => {
      asked += 1;
      return (placement: Placement): boolean => placement.fits(0, { gb: 50 });
    };
    expect(queue.take({ abilities })?.name).toBe('50');
    expect(asked).toBe(1);
  });
});

describe('8: a join', () => {
  it('waits for what was put in before it, and not for own calls that keep coming', async () => {
    const made = makeQueue(1);
    const { item: first } = made.put('first', true);
    const { item: second } = made.put('second', true);
    const joined = made.group.join();
    made.put('later', true);
    expect(made.queue.take()).toBe(first);
    made.both.end(first);
    expect(await isPending(joined)).toBe(true);
    expect(made.queue.take()).toBe(second);
    made.both.end(second);
    await joined;
    expect(made.take()).toBe('later');
  });

  it('that is given up receives nothing, and holds up nobody', async () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    let leave = (_error: unknown): void => {};
    const joined = made.group.join((own) => {
      leave = own;
    });
    const { room } = made.put('second');
    leave('given up');
    leave('given up twice');
    await expect(joined).rejects.toBe('given up');
    await room;
    made.both.fail(running, 'broken');
    await expect(made.group.join()).rejects.toBe('broken');
  });
});

describe('refusing', () => {
  it('lets what was put in go on', async () => {
    const made = makeQueue(1);
    made.put('first');
    const { room } = made.put('second');
    made.queue.close({ refusal: 'closing' });
    await expect(made.put('third').room).rejects.toBe('closing');
    expect(made.queue.size).not.toBe(0);
    made.both.end(made.queue.take() as Item);
    await room;
    made.both.end(made.queue.take() as Item);
    expect(made.queue.size).toBe(0);
  });
});

describe('closing', () => {
  it('drops what is in line, and refuses what comes', async () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    const { item } = made.put('second');
    made.queue.close(closed);
    expect(item.dropped).toEqual(['failed: closed']);
    await expect(made.put('third').room).rejects.toBe('closed');
    const told = made.group.done();
    expect(await isPending(told)).toBe(true);
    made.both.putBack(running);
    expect(running.dropped).toEqual(['failed: closed']);
    await expect(told).rejects.toBe('closed');
    await expect(made.group.join()).rejects.toBe('closed');
  });

  it('tells an error that nobody knows yet first', async () => {
    const made = makeQueue();
    const running = flying(made, 'first');
    const other = flying(made, 'second');
    const joins = [made.group.join(), made.group.join()];
    made.both.fail(running, 'broken');
    made.queue.close(closed);
    made.queue.close({
      refusal: 'closed twice',
      dropped: { state: 'cancelled', value: 'closed twice' },
    });
    made.both.end(other);
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
};

/** Calls that are their callers' own have names like o1, scheduled ones like c2. */
const isOwn = (name: string): boolean => name.startsWith('o');

/** The queue's rules, again, with lists of names. */
class Model {
  readonly max: number;
  line: string[] = [];
  flight: string[] = [];
  calls: Call[] = [];
  /** The puts among them that wait for room: those of own calls, and the first of the others. */
  room: Call[] = [];
  failure: string | undefined;
  because = '';
  isClosed = false;
  /** The results of calls and the drops of calls, in order. */
  told: string[] = [];
  made = 0;
  /** All calls ever made, so that `remove` is tried on those that are out, too. */
  names: string[] = [];

  constructor(max: number) {
    this.max = max;
  }

  note(by: string, error: string): void {
    if (this.failure !== undefined || this.isClosed) return;
    this.failure = error;
    this.because = `'${by}' failed: ${error}`;
    this.room = this.room.filter(({ name }) => isOwn(name));
    const dropped = this.line.filter((name) => !isOwn(name));
    this.line = this.line.filter(isOwn);
    for (const name of dropped) this.drop(name, this.whyCancelled(name));
  }

  whyCancelled(name: string): string {
    return `cancelled: ${because(name, this.because)}`;
  }

  drop(name: string, why: string): void {
    this.told.push(`${name} dropped: ${why}`);
  }

  isIdle(): boolean {
    return this.line.length === 0 && this.flight.length === 0;
  }

  /** Whether all calls that were made before the call of this number are out. */
  isOver(number: number): boolean {
    const waiting = this.calls.filter(({ kind }) => kind === 'put').map(({ name }) => name);
    const here = [...this.line, ...this.flight, ...waiting];
    return here.every((name) => Number(name.slice(1)) > number);
  }

  /** The result of the first call about scheduled calls; undefined if it has to wait. */
  answer(call: Call): string | undefined {
    const { kind, number } = call;
    if (this.failure !== undefined) {
      if (this.flight.some((each) => !isOwn(each))) return undefined;
      const { failure } = this;
      this.failure = undefined;
      return `rejects: ${failure}`;
    }
    if (this.isClosed) {
      return kind === 'put' || this.flight.length === 0 ? 'rejects: closed' : undefined;
    }
    if (kind === 'done') return `resolves: ${this.isIdle()}`;
    if (kind === 'join') return this.isOver(number) ? 'resolves' : undefined;
    if (!this.room.includes(call)) this.room.push(call);
    return this.letIn(call);
  }

  /** Lets in the call if it is the first one that waits for room and there is some. */
  letIn(call: Call | undefined): string | undefined {
    const hasRoom = !this.isClosed && this.line.length < this.max;
    if (call === undefined || this.room[0] !== call || !hasRoom) return undefined;
    this.room.shift();
    this.line.push(call.name);
    return 'resolves';
  }

  tell(call: Call, answer: string): void {
    this.calls = this.calls.filter((each) => each !== call);
    this.told.push(`call ${call.number} ${answer}`);
  }

  serve(): void {
    for (;;) {
      const [next] = this.room;
      const scheduled = this.calls.find(({ name }) => !isOwn(name));
      const letIn = this.letIn(next);
      const answer = scheduled && letIn === undefined ? this.answer(scheduled) : undefined;
      if (next !== undefined && letIn !== undefined) this.tell(next, letIn);
      else if (scheduled !== undefined && answer !== undefined) this.tell(scheduled, answer);
      else return;
    }
  }
}

class Real {
  readonly both: Both;
  readonly items = new Map<string, Item>();
  readonly told: string[] = [];

  constructor(max: number) {
    this.both = new Both(max, Number.POSITIVE_INFINITY);
  }

  make(name: string): Item {
    const { told } = this;
    const item = new (class extends Item {
      override become(life: Life): void {
        const before = this.dropped.length;
        super.become(life);
        for (const each of this.dropped.slice(before))
          told.push(`${name} dropped: ${String(each)}`);
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
  /** Makes the same call on the model and the queue; `at` picks one of several calls. */
  run(model: Model, real: Real, at: number): void;
};

const inFlight = (model: Model): boolean => model.flight.length > 0;

const steps: Record<string, Step> = {
  put: {
    run(model, real, at) {
      const number = ++model.made;
      const name = `${at % 3 === 0 ? 'o' : 'c'}${number}`;
      model.names.push(name);
      const call: Call = { number, kind: 'put', name };
      model.calls.push(call);
      if (isOwn(name) && model.isClosed) model.tell(call, 'rejects: closed');
      else if (isOwn(name)) model.room.push(call);
      model.serve();
      const room = real.both.put(real.make(name));
      // `put` returns undefined if the call is queued at once.
      expect(room === undefined).toBe(model.line.includes(name));
      real.hear(number, room ?? Promise.resolve());
    },
  },
  take: {
    run(model, real) {
      const name = model.isClosed ? undefined : model.line.shift();
      if (name !== undefined) model.flight.push(name);
      model.serve();
      expect(real.both.queue.take()?.name).toBe(name);
    },
  },
  end: {
    can: inFlight,
    run(model, real, at) {
      const name = picked(model.flight, at);
      model.flight = without(model.flight, name);
      model.serve();
      real.both.end(real.item(name));
    },
  },
  fail: {
    can: inFlight,
    run(model, real, at) {
      const name = picked(model.flight, at);
      model.flight = without(model.flight, name);
      if (isOwn(name)) {
        model.serve();
        real.both.end(real.item(name));
        return;
      }
      model.note(name, `${name} failed`);
      model.serve();
      real.both.fail(real.item(name), `${name} failed`);
    },
  },
  putBack: {
    can: inFlight,
    run(model, real, at) {
      const name = picked(model.flight, at);
      model.flight = without(model.flight, name);
      if (model.isClosed) model.drop(name, 'failed: dropped');
      else if (model.failure !== undefined && !isOwn(name)) {
        model.drop(name, model.whyCancelled(name));
      } else model.line.unshift(name);
      model.serve();
      real.both.putBack(real.item(name));
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
      model.room = model.room.filter((each) => each !== call);
      if (call !== undefined) model.told.push(`call ${call.number} rejects: given up`);
      if (isThere) model.serve();
      expect(real.both.remove(real.item(name))).toBe(isThere);
    },
  },
  join: {
    run(model, real) {
      const number = ++model.made;
      model.calls.push({ number, kind: 'join', name: '' });
      model.serve();
      real.hear(number, real.both.group.join());
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
      real.hear(number, real.both.group.done());
    },
  },
  close: {
    run(model, real) {
      if (!model.isClosed) {
        model.isClosed = true;
        for (const name of model.line.splice(0)) model.drop(name, 'failed: dropped');
        for (const call of model.room.splice(0)) {
          model.tell(call, `rejects: ${isOwn(call.name) ? 'dropped' : 'closed'}`);
          if (!isOwn(call.name)) model.serve();
        }
      }
      model.serve();
      real.both.queue.close({
        refusal: 'closed',
        dropped: { state: 'failed', value: 'dropped' },
      });
    },
  },
};

function places(real: Real, place: Place): string[] {
  return [...real.items.values()].filter((item) => item.place === place).map(({ name }) => name);
}

async function compare(model: Model, real: Real): Promise<void> {
  await turn();
  expect(real.told.toSorted()).toEqual(model.told.toSorted());
  // Those about scheduled calls in order, and the others.
  const isOfOwn = (each: string): boolean => model.names.includes(`o${each.split(' ')[1] ?? ''}`);
  const calls = (told: readonly string[], own: boolean): string[] =>
    told.filter((each) => each.startsWith('call') && isOfOwn(each) === own);
  for (const own of [false, true]) expect(calls(real.told, own)).toEqual(calls(model.told, own));
  const { both } = real;
  const { queue } = both;
  expect(both.hasFailed).toBe(model.failure !== undefined);
  expect([queue.queued, queue.count('in-flight')]).toEqual([
    model.line.length,
    model.flight.length,
  ]);
  const waiting = model.room.map(({ name }) => name);
  expect(places(real, 'queued').toSorted()).toEqual(model.line.toSorted());
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
          // When all calls have ended, no call waits any more.
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
