/** Calls with arguments that only a cluster has: Variables, PerWorkerValues and RemoteValues. */

import type { TakenArguments, Work } from '../../pool/queue/call.ts';
import { bytesOf, makeWork, newWork, type SpecialArguments } from '../../pool/queue/work.ts';
import {
  checkAttached,
  type Movable,
  transfer,
  transferListOf,
} from '../../pool/worker/transfer.ts';
import { PerWorkerValues } from '../datasets/per-worker.ts';
import { copyWithVariables } from '../variables/variable.ts';
import { RemoteValue } from './remote-value.ts';

/** @param cluster - which alone can use its PerWorkerValues and Variables */
export const specialArguments = (cluster: object): SpecialArguments => ({
  perWorkerOf(values) {
    let found: Map<number, number> | undefined;
    for (const [index, value] of values.entries()) {
      const id = PerWorkerValues.idOf(value, cluster);
      if (id !== undefined) (found ??= new Map<number, number>()).set(index, id);
    }
    return found;
  },
  copying: (copy) => copyWithVariables(cluster, copy),
});

/**
 * A call that waits for RemoteValues among its arguments. The others are copied, or taken, as by
 * `makeWork`, which makes the call that is sent, when all values are there.
 *
 * @throws TypeError, InvalidArgumentError, DataCloneError: the arguments that are no RemoteValues
 */
export function makeHeldWork(
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
      const list = copy.lists[index] as Movable[];
      return list.length === 0 ? own : transfer(own as object, list);
    });
    return { args, transfer: [], hasVariables };
  };
  if (moved.length > 0) return newWork(name, given, bytesOf(moved), undefined, false, [], copied);
  const { args, hasVariables } = copied();
  return newWork(name, args, 0, undefined, hasVariables);
}
