/** The jobs and tasks of a cluster, by name. TensorFlow's ClusterSpec. */

import {
  checkInteger,
  checkString,
  invalidType,
  isBag,
  isIterable,
  outOfRange,
} from '../base/arguments.ts';
import { showAs } from '../base/inspect.ts';
import { counted } from '../coordinator/words.ts';
import { InvalidArgumentError } from '../errors/errors.ts';

/** For each job the addresses of its tasks: a list from index 0, or an object by index. */
export type ClusterJobs = Readonly<
  Record<string, readonly string[] | Readonly<Record<number, string>>>
>;

function checkAddress(where: string, address: unknown): string {
  if (typeof address === 'string' && address !== '') return address;
  throw invalidType(where, 'a non-empty string', address);
}

/**
 * The greatest index of a task. There is a limit, because `jobTasks` returns an array with an
 * element for each index up to the last.
 */
const MAX_INDEX = 1_000_000;

/** @throws TypeError, RangeError, InvalidArgumentError */
function readTasks(job: string, tasks: unknown): Map<number, string> {
  if (job === '') throw new InvalidArgumentError('The name of a job is empty');
  const where = `jobs.${job}`;
  if (Array.isArray(tasks)) {
    const all = Array.from(tasks, (address: unknown, index): [number, string] => [
      index,
      checkAddress(`${where}[${index}]`, address),
    ]);
    return new Map(all);
  }
  if (!isBag(tasks) || isIterable(tasks)) throw invalidType(where, 'an Array or an object', tasks);
  const found = Object.entries(tasks).map(([key, address]): [number, string] => {
    const index = Number(key);
    if (!/^(?:0|[1-9]\d*)$/.test(key) || index > MAX_INDEX) {
      throw outOfRange(`${where}, a task's index,`, `an integer >= 0 and <= ${MAX_INDEX}`, key);
    }
    return [index, checkAddress(`${where}[${key}]`, address)];
  });
  return new Map(found.toSorted(([one], [other]) => one - other));
}

/**
 * Names the tasks of a cluster: `new ClusterSpec({ worker: ['a:1', 'b:1'], ps: { 2: 'c:1' } })`.
 * Immutable. A job given as an array equals one given as an object with the same tasks.
 *
 * @example
 * ```js
 * import { ClusterSpec } from 'allstop/cluster';
 *
 * const spec = new ClusterSpec({ worker: ['a:1', 'b:1'], ps: { 2: 'c:1' } });
 * console.log(spec.numTasks('worker'), spec.taskIndices('ps')); // 2 [ 2 ]
 * console.log(spec.taskAddress('worker', 1)); // b:1
 * ```
 */
export class ClusterSpec {
  readonly #jobs: ReadonlyMap<string, ReadonlyMap<number, string>>;

  static {
    showAs(ClusterSpec.prototype, (spec) => ({
      facts: Array.from(spec.#jobs, ([job, tasks]) => `${job}: ${counted(tasks.size, 'task')}`),
    }));
  }

  /**
   * @throws TypeError (`ERR_INVALID_ARG_TYPE`), RangeError (`ERR_OUT_OF_RANGE`);
   *   InvalidArgumentError: the name of a job is empty
   */
  constructor(jobs: ClusterJobs | ClusterSpec) {
    if (jobs instanceof ClusterSpec) {
      this.#jobs = jobs.#jobs;
      return;
    }
    if (!isBag(jobs) || isIterable(jobs)) {
      throw invalidType('jobs', 'an object or a ClusterSpec', jobs);
    }
    const named = Object.entries(jobs).toSorted(([one], [other]) => (one < other ? -1 : 1));
    this.#jobs = new Map(named.map(([job, tasks]) => [job, readTasks(job, tasks)]));
  }

  /**
   * One ClusterSpec with the tasks of all. A job that is a list in every spec that has it is
   * concatenated, in order; otherwise its tasks keep their indexes.
   *
   * @throws InvalidArgumentError: two tasks of a job have the same index
   */
  static union(...specs: readonly (ClusterJobs | ClusterSpec)[]): ClusterSpec {
    const given = specs.map((spec) => new ClusterSpec(spec));
    const names = new Set(given.flatMap((spec) => spec.jobs));
    const jobs = [...names].map((job): [string, string[] | Record<number, string>] => {
      const parts = given.flatMap((spec) => spec.#jobs.get(job) ?? []);
      if (parts.every(isDense)) return [job, parts.flatMap((tasks) => [...tasks.values()])];
      const all = new Map<number, string>();
      for (const [index, address] of parts.flatMap((tasks) => [...tasks])) {
        if (all.has(index)) {
          throw new InvalidArgumentError(`The job '${job}' has two tasks with the index ${index}`);
        }
        all.set(index, address);
      }
      return [job, Object.fromEntries(all)];
    });
    return new ClusterSpec(Object.fromEntries(jobs));
  }

  /** The names of the jobs, sorted. */
  get jobs(): string[] {
    return [...this.#jobs.keys()];
  }

  /** Whether there are no jobs. */
  get isEmpty(): boolean {
    return this.#jobs.size === 0;
  }

  /** @throws TypeError; InvalidArgumentError: there is no such job */
  numTasks(job: string): number {
    return this.#tasks(job).size;
  }

  /** The indexes of a job's tasks, ascending. @throws as `numTasks` */
  taskIndices(job: string): number[] {
    return [...this.#tasks(job).keys()];
  }

  /** @throws TypeError, RangeError; InvalidArgumentError: there is no such job, or no such task */
  taskAddress(job: string, index: number): string {
    const tasks = this.#tasks(job);
    checkInteger('index', index, 0, Number.MAX_SAFE_INTEGER);
    const address = tasks.get(index);
    if (address !== undefined) return address;
    throw new InvalidArgumentError(`The job '${job}' has no task with the index ${index}`);
  }

  /** The addresses by index; undefined where an index is left out. @throws as `numTasks` */
  jobTasks(job: string): (string | undefined)[] {
    const tasks = this.#tasks(job);
    const count = ([...tasks.keys()].at(-1) ?? -1) + 1; // the keys of `tasks` are ascending
    return Array.from({ length: count }, (_, index) => tasks.get(index));
  }

  /** Plain data that makes an equal spec: a job without missing indexes is an array. */
  asDict(): Record<string, string[] | Record<number, string>> {
    const jobs = [...this.#jobs].map(
      ([job, tasks]): [string, string[] | Record<number, string>] => [
        job,
        isDense(tasks) ? [...tasks.values()] : Object.fromEntries(tasks),
      ],
    );
    return Object.fromEntries(jobs);
  }

  /** Whether `other` is a ClusterSpec with the same jobs, tasks and addresses. */
  equals(other: unknown): boolean {
    return other instanceof ClusterSpec && JSON.stringify(other) === JSON.stringify(this);
  }

  /** As TensorFlow's: `ClusterSpec({'ps': ['a:1'], 'worker': ['b:1', 'c:1']})`. */
  toString(): string {
    const jobs = [...this.#jobs].map(([job, tasks]) => {
      const texts = isDense(tasks)
        ? `[${[...tasks.values()].map(quoted).join(', ')}]`
        : `{${[...tasks].map(([index, address]) => `${index}: ${quoted(address)}`).join(', ')}}`;
      return `${quoted(job)}: ${texts}`;
    });
    return `ClusterSpec({${jobs.join(', ')}})`;
  }

  /** As `asDict`, for `JSON.stringify`. */
  toJSON(): Record<string, string[] | Record<number, string>> {
    return this.asDict();
  }

  #tasks(job: string): ReadonlyMap<number, string> {
    checkString('job', job);
    const tasks = this.#jobs.get(job);
    if (tasks !== undefined) return tasks;
    const jobs = this.isEmpty
      ? 'The cluster has no jobs'
      : `The cluster has: ${this.jobs.join(', ')}`;
    throw new InvalidArgumentError(`Unknown job '${job}'. ${jobs}`);
  }
}

/** As Python writes a string: in double quotes only if it has single ones, and no double ones. */
function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replaceAll(/[\\\n\r\t]/g, (letter) => JSON.stringify(letter).slice(1, -1));
  return `${quote}${escaped.replaceAll(quote, `\\${quote}`)}${quote}`;
}

function isDense(tasks: ReadonlyMap<number, string>): boolean {
  return [...tasks.keys()].every((index, position) => index === position);
}
