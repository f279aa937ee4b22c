/** Nodes that are there and were not let in: why, and for how long they have tried. */

import type { NodeInfo, RefusedNode } from '../wire/control-messages.ts';
import { type ClusterTask, UNREGISTERED } from './tasks.ts';

/** A node says hello every second. */
const FORGOTTEN_MS = 5_000;
const MOST = 256;

type Entry = { seen: number; told: RefusedNode; task: ClusterTask | undefined };

export class RefusedNodes {
  readonly #entries = new Map<string, Entry>();

  /** `task`: the one that shows why. */
  note(
    { node, job, task: wanted, host, pid }: NodeInfo,
    reason: { phase: string; cause: string; remedy: string },
    task?: ClusterTask,
  ): void {
    const known = this.#entries.get(node);
    if (known === undefined && this.#entries.size >= MOST) return;
    const since = known?.told.phase === reason.phase ? known.told.since : new Date();
    const told = {
      job,
      ...(wanted !== undefined && { task: wanted }),
      host,
      pid,
      since,
      ...reason,
    };
    this.#entries.set(node, { seen: performance.now(), told, task });
  }

  /** It was let in. */
  forget(node: string): void {
    this.#entries.delete(node);
  }

  /** Those that have gone. True: a task's reason has gone with one. */
  expire(): boolean {
    let isOther = false;
    for (const [node, { seen, told, task }] of this.#entries) {
      if (performance.now() - seen < FORGOTTEN_MS) continue;
      this.#entries.delete(node);
      if (task === undefined || task.session !== undefined || task.phase !== told.phase) continue;
      const cause = `the worker that was turned away (${told.phase}) is gone`;
      isOther = task.enter(UNREGISTERED, cause, told.remedy) || isOther;
    }
    return isOther;
  }

  get all(): RefusedNode[] {
    return [...this.#entries.values()].map(({ told }) => told);
  }
}
