/** The end of all sessions of a run that is closed. */

import { within } from '../../base/timer.ts';
import type { Session } from './session.ts';

/** How long nodes have to acknowledge the end of their sessions. */
const END_MS = 1_000;

/** Tells the nodes. Resolves when those that are there have acknowledged it, or after END_MS. */
export async function endSessions(
  sessions: readonly Session[],
  isConnected: boolean,
): Promise<void> {
  for (const session of sessions) session.post({ kind: 'end', isClosed: true });
  if (!isConnected) return;
  const there = sessions.filter(({ isAway }) => !isAway);
  const drained = Promise.all(there.map(({ channel }) => channel.drained()));
  await within(END_MS, drained, () => {});
}
