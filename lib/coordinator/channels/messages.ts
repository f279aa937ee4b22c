/** The channels of `node:diagnostics_channel` about coordinators and their threads. */

import { type Channel, channel } from 'node:diagnostics_channel';
import type { StopRecord } from '../stop-record.ts';
import type { ThreadInfo } from '../threads/thread-info.ts';

/** What each message on a channel of ours begins with. */
export type CoordinatorMessage = {
  /** The name of the coordinator. */
  coordinator: string;
  /** Which coordinator it is, where several have one name: unique in the process. */
  coordinatorId: string;
};

/** On `allstop:stop`: a stop was requested. */
export type StopMessage = CoordinatorMessage & {
  /**
   * Who requested the stop, when and why. Its error does not count as given to the program.
   * Undefined if the stop was cleared before this thread could look.
   */
  record: StopRecord | undefined;
};

/** On `allstop:thread:start` and `allstop:thread:end`. */
export type ThreadMessage = CoordinatorMessage & {
  /** The thread that has started or ended, or is a straggler. */
  thread: ThreadInfo;
};

/** On `allstop:straggler`: a join has found the thread alive after the grace period. */
export type StragglerMessage = ThreadMessage & {
  /** Milliseconds since the stop. */
  runningForMs: number;
};

export const STOP: Channel<unknown, StopMessage> = channel('allstop:stop') as Channel<
  unknown,
  StopMessage
>;
export const THREAD_START: Channel<unknown, ThreadMessage> = channel(
  'allstop:thread:start',
) as Channel<unknown, ThreadMessage>;
export const THREAD_END: Channel<unknown, ThreadMessage> = channel('allstop:thread:end') as Channel<
  unknown,
  ThreadMessage
>;
export const STRAGGLER: Channel<unknown, StragglerMessage> = channel(
  'allstop:straggler',
) as Channel<unknown, StragglerMessage>;
