/**
 * The calls of a cluster: `schedule`, and arguments that stand for values (RemoteValues, of which a
 * call waits outside the line) or for what each worker has (PerWorkerValues).
 */

import { rejection } from '../../base/callers-frames.ts';
import {
  Calls,
  type CallsHost,
  type CheckedOptions,
  checkCallOptions,
  type HeldCall,
  type Report,
  type Started,
  shownName,
} from '../../pool/calls/calls.ts';
import type { ScheduleOptions } from '../../pool/calls/signatures.ts';
import type { Call, Group, TakenArguments, Work } from '../../pool/queue/call.ts';
import type { Outcome, Settle } from '../../pool/queue/call-queue.ts';
import { stopError } from '../../pool/queue/call-rules.ts';
import { type AnyFunction, checkFunctionOrName } from '../../pool/queue/module-exports.ts';
import { deadlineExceeded, inTime } from '../../pool/queue/time-limits.ts';
import {
  argumentsOf,
  bytesOf,
  makeWork,
  newWork,
  type SpecialArguments,
} from '../../pool/queue/work.ts';
import { checkAttached, transfer, transferListOf } from '../../values/to-thread.ts';
import { type Datasets, PerWorkerValues } from '../datasets/datasets.ts';
import { copyWithVariables } from '../variables/variable.ts';
import { makeRemoteValue, RemoteValue } from './remote-value.ts';

// RemoteValues as arguments: the call waits for them outside the line.

/** Whether RemoteValues are among the arguments. */
const isHeldBy = (args: unknown): args is readonly unknown[] =>
  Array.isArray(args) && args.some((value) => value instanceof RemoteValue);

// Calls with arguments that only a cluster has: Variables, PerWorkerValues and RemoteValues.

/**
 * A call that waits for RemoteValues among its arguments. The others are copied, or taken, as by
 * `makeWork`, which makes the call that is sent, when all values are there.
 *
 * @throws TypeError, InvalidArgumentError, DataCloneError: the arguments that are no RemoteValues
 */
function makeHeldWork(
  name: string,
  passed: readonly unknown[],
  sharesMemory: boolean,
  special: SpecialArguments,
): Work {
  const given = [...passed]; // the caller may change its array while the call is held
  const others = given.map((value) => (value instanceof RemoteValue ? undefined : value));
  makeWork(name, others, sharesMemory, special);
  const perWorker = special.perWorkerOf(others);
  const stays = (value: unknown, index: number): boolean =>
    value instanceof RemoteValue || perWorker?.has(index) === true;
  const values = given.map((value, index) => (stays(value, index) ? undefined : value));
  const lists = given.map((value) => transferListOf([value]));
  const moved = lists.flat();
  const copied = (): TakenArguments => {
    checkAttached(moved);
    const [copy, hasVariables] = special.copying(() =>
      structuredClone({ values, lists }, { transfer: moved as never }),
    );
    const args = given.map((value, index) => {
      if (stays(value, index)) return value;
      const own = copy.values[index];
      const list = copy.lists[index] ?? [];
      return list.length === 0 ? own : transfer(own as object, list);
    });
    return { args, transfer: [], hasVariables };
  };
  if (moved.length > 0) return newWork(name, given, bytesOf(moved), undefined, false, [], copied);
  const { args, hasVariables } = copied();
  return newWork(name, args, 0, undefined, hasVariables);
}

export class ClusterCalls extends Calls implements SpecialArguments {
  readonly #cluster: object;
  readonly copying: SpecialArguments['copying'] = (copy) => copyWithVariables(this.#cluster, copy);
  readonly #group: Group;
  readonly #datasets: Datasets;

  /** @param cluster - which alone can use its PerWorkerValues and Variables */
  constructor(host: CallsHost, cluster: object, group: Group, datasets: Datasets) {
    super(host);
    this.#cluster = cluster;
    this.#group = group;
    this.#datasets = datasets;
  }

  /** The errors are those of `ClusterCoordinator.schedule`. */
  schedule(
    fn: AnyFunction | string,
    args: unknown,
    given: ScheduleOptions | undefined,
  ): Promise<RemoteValue<unknown>> {
    let room: Promise<void> | undefined;
    let remote: RemoteValue<unknown>;
    try {
      checkFunctionOrName(fn);
      const values = argumentsOf(args);
      const options = { ...checkCallOptions(given, this.host), group: this.#group };
      const report: Report = (reported) => RemoteValue.report(remote, reported);
      remote = makeRemoteValue<unknown>((settle) => {
        const started = this.start(fn, values, options, settle, report);
        room = started.room;
        return started;
      });
    } catch (error) {
      return Promise.reject(error);
    }
    if (room === undefined) return this.give(remote);
    return this.host.keepAlive((room as Promise<void>).then(() => remote, rejection));
  }

  override start(
    fn: AnyFunction | string,
    args: readonly unknown[],
    options: CheckedOptions,
    settle: Settle,
    report?: Report,
  ): Started {
    if (options.key === undefined || !isHeldBy(args)) {
      return super.start(fn, args, options, settle, report);
    }
    return this.#startWhenThere(fn, args, options, settle);
  }

  /** A call of the name with these arguments. @throws the errors of wrong arguments */
  override make(name: string, args: readonly unknown[]): Work {
    const make = isHeldBy(args) ? makeHeldWork : makeWork;
    return make(name, args, this.host.sharesMemory(), this);
  }

  perWorkerOf(values: readonly unknown[]): Map<number, number> | undefined {
    let found: Map<number, number> | undefined;
    for (const [index, value] of values.entries()) {
      const id = PerWorkerValues.idOf(value, this.#cluster);
      if (id !== undefined) (found ??= new Map<number, number>()).set(index, id);
    }
    return found;
  }

  protected override hasToWait({ perWorker, args }: Work): boolean {
    return perWorker !== undefined || isHeldBy(args);
  }

  protected override get defined(): Promise<void> {
    return this.#datasets.defined;
  }

  protected override put(
    work: Work,
    options: CheckedOptions,
    settle: Settle,
    report: Report | undefined,
  ): HeldCall {
    if (!isHeldBy(work.args)) return super.put(work, options, settle, report);
    const held = super.put(work, { ...options, isHeld: true }, settle, report);
    const { call, room } = held;
    if (room === undefined) this.#releaseWhenThere(call);
    else {
      room.then(
        () => this.#releaseWhenThere(call),
        () => {}, // it is out
      );
    }
    return held;
  }

  /** A call with a key: what its arguments are is known when its RemoteValues are there. */
  #startWhenThere(
    fn: AnyFunction | string,
    args: readonly unknown[],
    options: CheckedOptions,
    settle: Settle,
  ): Started {
    const { limits } = options;
    const others = args.map((value) => (value instanceof RemoteValue ? undefined : value));
    const work = this.make(shownName(fn), others);
    const kept = this.checkKeeps();
    kept.hashOf(work, others);
    const began = performance.now();
    const { rules } = this.host;
    const isEarlier = rules.queue.end === undefined;
    const tooLate = (): Error => deadlineExceeded(shownName(fn), limits.timeoutMs);
    const there = Promise.all(
      args.map((value) => (value instanceof RemoteValue ? value.fetch() : value)),
    );
    let started: Started | undefined;
    let cancelled: { reason: unknown } | undefined;
    const begin = async (): Promise<void> => {
      // The values of another cluster do not end with this one.
      const ended = rules.changes.unless(() => rules.isOver, there);
      const values = await inTime(ended, limits, tooLate);
      if (cancelled !== undefined) throw cancelled.reason;
      if (values === undefined) {
        throw rules.queue.end?.dropped?.value ?? stopError(rules.coordinator);
      }
      const leftMs = Math.max(0, limits.leftMs - (performance.now() - began));
      const own = { ...options, limits: { ...limits, leftMs }, isEarlier };
      started = this.start(fn, values, own, settle);
      await started.room;
    };
    return {
      room: kept.waits(begin()),
      cancel(reason) {
        if (started === undefined) cancelled = { reason };
        else started.cancel(reason);
      },
    };
  }

  /**
   * Queues a call that is held in the moment in which its last RemoteValue is there, or fails it with
   * the first that has failed: before the queue hears of that failure, which would cancel the call
   * for it. Does nothing if the call is settled first.
   */
  #releaseWhenThere(call: Call): void {
    const { args } = call.work;
    if (!isHeldBy(args)) return;
    const values = [...args];
    const leaves: (() => void)[] = [];
    let missing = args.filter((value) => value instanceof RemoteValue).length;
    const leave = (): void => {
      missing = -1;
      for (const each of leaves) each();
    };
    call.atEnd(leave);
    for (const [index, value] of args.entries()) {
      if (missing < 0) return;
      if (!(value instanceof RemoteValue)) continue;
      const onSettled = (state: Outcome['state'], result: unknown): void => {
        if (missing < 0) return;
        values[index] = result;
        missing -= 1;
        if (state === 'ready' && missing > 0) return;
        leave();
        if (state === 'ready') this.#releaseWith(call, values);
        else this.host.rules.decide(call, { state, value: result });
      };
      leaves.push(RemoteValue.onSettled(value, onSettled));
    }
  }

  /** @param values - the arguments, with the results in place of the RemoteValues */
  #releaseWith(call: Call, values: unknown[]): void {
    const { name, hasVariables } = call.work;
    try {
      // Copies of Variables were made when the call was held: `make` takes them for plain objects.
      const made = this.make(name, values);
      call.arrive({ ...made, hasVariables: hasVariables || made.hasVariables });
      this.release(call);
    } catch (error) {
      this.host.rules.decide(call, { state: 'failed', value: error });
    }
  }
}
