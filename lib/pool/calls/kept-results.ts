/** The seam between calls with a key and what keeps their results, which stands above the pool. */

import { invalidType } from '../../base/arguments.ts';
import { fieldOf } from '../../base/thrown-value.ts';
import type { Call, Work } from '../queue/call.ts';
import type { Outcome, Settle } from '../queue/life.ts';
import type { CheckedOptions } from './call-options.ts';

/** Says where results are kept: a FileResults or a NatsResults. Made by the user. */
export interface Results {
  /**
   * Opens the place for one pool. Waits for nothing: what cannot be reached is told by a call.
   *
   * @internal
   * @param definition - the fingerprint of the module
   */
  open(definition: string, host: KeptResultsHost): KeptResults;
}

/** A call that has begun, for the one who made it. */
export type Started = {
  cancel(reason: unknown): void;
  /** Resolves when it is in the queue, or rejects; undefined if it is. */
  room: Promise<void> | undefined;
};

/** A call in the queue that is held there. */
export type HeldCall = { call: Call; room: Promise<void> | undefined };

export interface KeptResultsHost {
  /** Puts a call in the queue that is held there. */
  hold(work: Work, options: CheckedOptions, settle: Settle): HeldCall;
  /** Queues a call that was held. */
  release(call: Call): void;
  /** `Engine.assertHeld` */
  assertHeld(): Promise<void>;
  /** `CallRules.decide` */
  decide(call: Call, outcome: Outcome): void;
}

export interface KeptResults {
  /** Whether a call with a key has not settled. */
  readonly isBusy: boolean;
  /** Resolves when all calls that have begun have settled. */
  settled(): Promise<void>;
  /** Called when the pool is over. Resolves when what is being stored is stored. */
  close(): Promise<void>;
  /** A call waits for its arguments: `promise` resolves when it has begun. */
  waits<T>(promise: Promise<T>): Promise<T>;
  /** @throws InvalidArgumentError: the arguments cannot be compared with stored ones */
  hashOf(work: Work, args: readonly unknown[]): string;
  /**
   * Begins a call, with its key and the hash of its arguments in `options`.
   *
   * @throws InvalidArgumentError: a call with the same key and other arguments has not ended
   */
  start(work: Work, options: CheckedOptions, settle: Settle): Started;
}

/** @throws TypeError */
export function checkResults(results: unknown): asserts results is Results | undefined {
  if (results === undefined || typeof fieldOf(results, 'open') === 'function') {
    return;
  }
  throw invalidType('options.results', 'a FileResults or a NatsResults', results);
}
