/** What puts a call in its line in the queue: its priority, and which workers may run it. */

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
  /** Asked once for all placements, since what functions use has to be added up. */
  abilities(): (placement: Placement) => boolean;
  /** Whether another worker has what this item needs, and this one has not: its module's export. */
  lacks?(item: InLine): boolean;
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

const resourcesText = (resources: Resources): string =>
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
