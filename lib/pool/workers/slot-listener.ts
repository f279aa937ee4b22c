/** What a slot is made with, and what it tells its pool. */

import type { StopMessage } from '../../coordinator/stop-relay.ts';
import type { WorkerInfo } from '../queue/strategy.ts';
import type { Isolation, WorkerName, WorkerOptions } from './channel.ts';

/** `S`: the slot. */
export interface SlotListener<S> {
  /** The worker can take more closures than before. */
  onFree(slot: S): void;
  /** The worker has imported the module and made its data sets. */
  onReady(slot: S): void;
  /** The worker, a thread, is blocked in native code and cannot be ended. `onGone` follows. */
  onStuck(stuck: WorkerInfo): void;
  /** The worker has imported the module, whose exports have these names. */
  onLoaded(slot: S, names: readonly string[]): void;
  /** The module cannot be imported. `isWhole`: the message of the error names the module. */
  onImportFailed(slot: S, error: unknown, isWhole: boolean): void;
  /** The worker is gone. Its closures were given to `StrategyHost.returned` before. */
  onGone(slot: S, death: Death): void;
  /** A process has stopped its coordinator. */
  onStop(message: StopMessage): void;
  onResult(slot: S, name: string, us: number): void;
}

export type Death = {
  cause: Error;
  /** Whether `kill` has ended the worker, other than because it could not begin. */
  wasKilled: boolean;
  /** Whether `retire` has ended the worker, which ran nothing. */
  wasRetired: boolean;
  /** Whether the worker had imported the module and made its data sets. */
  wasReady: boolean;
  /** The function, also of a data set, that the worker was running. */
  running: string | undefined;
};

export type SlotSettings = {
  readonly index: number;
  /** By default worker:INDEX. */
  readonly name: WorkerName | undefined;
  readonly isolation: Isolation;
  readonly options: WorkerOptions;
};
