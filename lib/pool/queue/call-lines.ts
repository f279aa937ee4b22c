/**
 * The queued calls: first those of high priority, then normal, then low; in each priority first
 * in, first out. Calls that only some workers may run have a line of their own for each
 * placement, so that a worker passes those that it may not run at once, however many they are.
 */

import { outOfRange } from '../../base/arguments.ts';

export const PRIORITIES = ['high', 'normal', 'low'] as const;
/** Which functions are run first: the option `priority` of a call. */
export type Priority = (typeof PRIORITIES)[number];

/** The part of a call that the lines use. */
export interface InLine {
  /** 'normal' if it is left out. */
  readonly priority?: Priority;
  /** Which workers may run it; undefined: any. */
  readonly placement?: Placement | undefined;
  /** Among which of PRIORITIES it waits, and its position there. Only the lines write them. */
  rank?: number;
  order?: number;
}

/** Which placements a worker can serve now. */
export interface Runner {
  /** The index of the worker, or of the node. */
  readonly index?: number | undefined;
  canRun(placement: Placement): boolean;
  /** Whether another worker has what this item needs, and this one has not: its module's export. */
  lacks?(item: InLine): boolean;
}

const ANYWHERE = '';

export class CallLines<C extends InLine> {
  readonly #isHere: (item: C) => boolean;
  /** By priority, the first served first: by placement. */
  readonly #lines: Map<string, Line<C>>[];
  #size = 0;
  /** The number of items with a placement. */
  #placed = 0;
  #first = 0;
  #last = 0;

  /** @param isHere - as of a Line */
  constructor(isHere: (item: C) => boolean) {
    this.#isHere = isHere;
    this.#lines = PRIORITIES.map(() => new Map([[ANYWHERE, new Line<C>(isHere)]]));
  }

  get size(): number {
    return this.#size;
  }

  /** Whether items are here that only some workers may run. */
  get hasPlaced(): boolean {
    return this.#placed > 0;
  }

  /** The workers that items are placed on, by index. */
  get placedOn(): number[] {
    if (this.#placed === 0) return [];
    return this.firsts.flatMap(({ placement }) => placement?.worker ?? []);
  }

  /** The first item of each priority and placement: the oldest of all is among them. */
  get firsts(): C[] {
    return this.#lines.flatMap((lines) =>
      [...lines.values()].flatMap((line) => line.first() ?? []),
    );
  }

  push(item: C): void {
    this.#pushAt(item, rankOf(item));
  }

  /** Behind everything that is here now, whatever its priority. */
  pushLast(item: C): void {
    const isFilled = (lines: Map<string, Line<C>>): boolean =>
      [...lines.values()].some(({ size }) => size > 0);
    this.#pushAt(item, Math.max(rankOf(item), this.#lines.findLastIndex(isFilled)));
  }

  /** Ahead of all of its priority. */
  unshift(item: C): void {
    this.#first -= 1;
    item.order = this.#first;
    this.#enter(item, rankOf(item)).unshift(item);
  }

  /** The next item that the runner may run; without a runner, one that any worker may run. */
  first(runner?: Runner): C | undefined {
    return this.#next(runner)?.first();
  }

  shift(runner?: Runner): C | undefined {
    const item = this.#next(runner)?.shift();
    if (item !== undefined) this.#left(item);
    return item;
  }

  /** Has to be called when `isHere` has become false for an item of the lines. */
  hasLeft(item: C): void {
    this.#lines[item.rank ?? 0]?.get(keyOf(item))?.hasLeft();
    this.#left(item);
  }

  /** Removes the items for which `isWanted` is true, and returns them in order. */
  takeAll(isWanted: (item: C) => boolean): C[] {
    const taken = this.#lines.flatMap((lines) =>
      [...lines.values()]
        .flatMap((line) => line.takeAll(isWanted))
        .toSorted((one, other) => (one.order ?? 0) - (other.order ?? 0)),
    );
    for (const item of taken) this.#left(item);
    return taken;
  }

  #pushAt(item: C, rank: number): void {
    this.#last += 1;
    item.order = this.#last;
    this.#enter(item, rank).push(item);
  }

  /** @returns the line of the item, which it enters next */
  #enter(item: C, rank: number): Line<C> {
    this.#size += 1;
    if (item.placement !== undefined) this.#placed += 1;
    item.rank = rank;
    const lines = this.#lines[rank] as Map<string, Line<C>>;
    const key = keyOf(item);
    let line = lines.get(key);
    if (line === undefined) lines.set(key, (line = new Line<C>(this.#isHere)));
    return line;
  }

  #left(item: C): void {
    this.#size -= 1;
    if (item.placement === undefined) return;
    this.#placed -= 1;
    const lines = this.#lines[item.rank ?? 0];
    const key = keyOf(item);
    if (lines?.get(key)?.size === 0) lines.delete(key);
  }

  #next(runner: Runner | undefined): Line<C> | undefined {
    for (const lines of this.#lines) {
      let next: Line<C> | undefined;
      let least = Number.POSITIVE_INFINITY;
      for (const line of lines.values()) {
        const item = line.first();
        if (item === undefined || (item.order ?? 0) > least) continue;
        const { placement } = item;
        if (placement !== undefined && runner?.canRun(placement) !== true) continue;
        if (runner?.lacks?.(item) === true) continue;
        next = line;
        least = item.order ?? 0;
      }
      if (next !== undefined) return next;
    }
    return undefined;
  }
}

/** The position of its priority in PRIORITIES. */
export const rankOf = ({ priority = 'normal' }: InLine): number => PRIORITIES.indexOf(priority);
const keyOf = ({ placement }: InLine): string => placement?.key ?? ANYWHERE;

/**
 * A line, first in, first out, whose items may leave from anywhere: an item that has left stays
 * in the arrays, where it is skipped, until most items there have left. So each call takes the
 * same time on average, however long the line is.
 */
export class Line<T> {
  readonly #isHere: (item: T) => boolean;
  #head: T[] = []; // reversed: the next item is at the end
  #tail: (T | undefined)[] = [];
  #next = 0; // in #tail
  #size = 0;
  /** The number of items in the arrays that have left. */
  #left = 0;

  /** @param isHere - false from the moment on in which an item leaves other than by `shift` */
  constructor(isHere: (item: T) => boolean) {
    this.#isHere = isHere;
  }

  get size(): number {
    return this.#size;
  }

  /** All items, in order. */
  get items(): T[] {
    return this.#all().filter(this.#isHere);
  }

  push(item: T): void {
    this.#size += 1;
    this.#tail.push(item);
  }

  unshift(item: T): void {
    this.#size += 1;
    this.#head.push(item);
  }

  /** The first item, which stays in the line. */
  first(): T | undefined {
    for (;;) {
      const item = this.#head.length > 0 ? this.#head.at(-1) : this.#tail[this.#next];
      if (item === undefined || this.#isHere(item)) return item;
      this.#drop();
      this.#left -= 1;
    }
  }

  shift(): T | undefined {
    const item = this.first();
    if (item === undefined) return undefined;
    this.#size -= 1;
    this.#drop();
    return item;
  }

  /** Has to be called when `isHere` has become false for an item of the line. */
  hasLeft(): void {
    this.#size -= 1;
    this.#left += 1;
    if (this.#left <= this.#size) return;
    this.#tail = this.#size === 0 ? [] : this.items;
    this.#head = [];
    this.#next = 0;
    this.#left = 0;
  }

  /** Removes the items for which `isWanted` is true, and returns them in order. */
  takeAll(isWanted: (item: T) => boolean = () => true): T[] {
    const here = this.items;
    const taken = here.filter(isWanted);
    this.#tail = here.filter((item) => !isWanted(item));
    this.#head = [];
    this.#next = 0;
    this.#left = 0;
    this.#size = this.#tail.length;
    return taken;
  }

  #all(): T[] {
    return [...this.#head.toReversed(), ...(this.#tail.slice(this.#next) as T[])];
  }

  /** Takes the first item out of the arrays. */
  #drop(): void {
    if (this.#head.length > 0) {
      this.#head.pop();
      return;
    }
    this.#tail[this.#next] = undefined; // so that the array does not keep the item alive
    this.#next += 1;
    if (this.#next > 1_024 && this.#next * 2 > this.#tail.length) {
      this.#tail = this.#tail.slice(this.#next);
      this.#next = 0;
    }
  }
}

// Which workers may run a call: a certain one, or those that have what it needs.

/** Amounts by name: what a worker has, or a function needs. */
export type Resources = Readonly<Record<string, number>>;

export class Placement {
  readonly worker: number | undefined;
  readonly resources: Resources | undefined;
  /** Equal for equal placements; not empty. */
  readonly key: string;

  private constructor(worker: number | undefined, resources: Resources | undefined) {
    this.worker = worker;
    this.resources = resources;
    const sorted = Object.entries(resources ?? {}).toSorted(([one], [other]) =>
      one < other ? -1 : 1,
    );
    this.key = JSON.stringify([worker ?? null, sorted]);
  }

  /** @returns undefined if any worker will do */
  static of(worker: number | undefined, resources: Resources = {}): Placement | undefined {
    const needed = Object.entries(resources).filter(([, amount]) => amount > 0);
    if (worker === undefined && needed.length === 0) return undefined;
    return new Placement(worker, needed.length === 0 ? undefined : Object.fromEntries(needed));
  }

  /** For messages: `worker 3`, `a worker with gpu=1`. */
  get text(): string {
    const { worker, resources } = this;
    const needs = resources === undefined ? '' : ` with ${resourcesText(resources)}`;
    return `${worker === undefined ? 'a worker' : `worker ${worker}`}${needs}`;
  }

  /** Whether the worker may run it, which has so much that no function uses. */
  fits(worker: number, free: Resources): boolean {
    if (this.worker !== undefined && this.worker !== worker) return false;
    const needed = Object.entries(this.resources ?? {});
    return needed.every(
      ([name, amount]) => (Object.hasOwn(free, name) ? (free[name] ?? 0) : 0) >= amount,
    );
  }
}

/** The error of a call that no worker will ever run; `why`: of `Engine.whyNowhere`. */
export function nowhere({ worker, resources }: Placement, why: string): RangeError {
  return worker === undefined
    ? outOfRange('options.resources', `what a worker can have: ${why}`, resources)
    : outOfRange('options.worker', `that of a worker that can be: ${why}`, worker);
}

export const resourcesText = (resources: Resources): string =>
  Object.entries(resources)
    .map(([name, amount]) => `${name}=${amount}`)
    .join(',');

/** What is left of `all` while functions with these placements run. */
export function freeOf(all: Resources, running: Iterable<Placement | undefined>): Resources {
  const free: Record<string, number> = { ...all };
  for (const placement of running) {
    for (const [name, amount] of Object.entries(placement?.resources ?? {})) {
      free[name] = (free[name] ?? 0) - amount;
    }
  }
  return free;
}
