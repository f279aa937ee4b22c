/**
 * The calls of a cluster: `schedule`, and arguments that stand for values (RemoteValues, of which a
 * call waits outside the line) or for what each worker has (PerWorkerValues).
 */

import { type CheckedOptions, checkCallOptions } from '../../pool/calls/call-options.ts';
import { Calls, type CallsHost, type Report, shownName } from '../../pool/calls/calls.ts';
import type { HeldCall, Started } from '../../pool/calls/kept-results.ts';
import type { ScheduleOptions } from '../../pool/calls/signatures.ts';
import type { Call, Group, Work } from '../../pool/queue/call.ts';
import type { Settle } from '../../pool/queue/life.ts';
import { type AnyFunction, checkFunctionOrName } from '../../pool/queue/module-exports.ts';
import { deadlineExceeded, inTime } from '../../pool/queue/time-limits.ts';
import { argumentsOf, makeWork, type SpecialArguments } from '../../pool/queue/work.ts';
import type { Datasets } from '../datasets/datasets.ts';
import { makeHeldWork, specialArguments } from './held-call.ts';
import { isHeldBy, whenThere } from './remote-arguments.ts';
import { makeRemoteValue, RemoteValue } from './remote-value.ts';

export class ClusterCalls extends Calls {
  readonly #special: SpecialArguments;
  readonly #group: Group;
  readonly #datasets: Datasets;

  /** @param cluster - which alone can use its PerWorkerValues and Variables */
  constructor(host: CallsHost, cluster: object, group: Group, datasets: Datasets) {
    super(host);
    this.#special = specialArguments(cluster);
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
    return this.host.keepAlive((room as Promise<void>).then(() => remote));
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
    return make(name, args, this.host.sharesMemory(), this.#special);
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
    const tooLate = (): Error => deadlineExceeded(shownName(fn), limits.timeoutMs);
    const there = Promise.all(
      args.map((value) => (value instanceof RemoteValue ? value.fetch() : value)),
    );
    let started: Started | undefined;
    let cancelled: { reason: unknown } | undefined;
    const begin = async (): Promise<void> => {
      const values = await inTime(there, limits, tooLate);
      if (cancelled !== undefined) throw cancelled.reason;
      const leftMs = Math.max(0, limits.leftMs - (performance.now() - began));
      started = this.start(fn, values, { ...options, limits: { ...limits, leftMs } }, settle);
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

  /** Queues a call that is held when its values are there. */
  #releaseWhenThere(call: Call): void {
    const { rules } = this.host;
    const { name, args, hasVariables } = call.work;
    if (!isHeldBy(args)) return;
    whenThere(args, call, {
      onThere: (values) => {
        try {
          // Copies of Variables were made when the call was held: `make` takes them for plain objects.
          const made = this.make(name, values);
          call.arrive({ ...made, hasVariables: hasVariables || made.hasVariables });
          this.release(call);
        } catch (error) {
          rules.decide(call, { state: 'failed', value: error });
        }
      },
      onFailed: (outcome) => rules.decide(call, outcome),
    });
  }
}
