/** Which nodes get a task of the cluster, and which nodes were refused, and why. */

import {
  type Refusal,
  type RefusalPhase,
  refused,
  type TaskPhase,
  unregistered,
} from '../../errors/phases.ts';
import { importError, moduleFingerprint, whyNoFile } from '../../pool/worker/module.ts';
import {
  type NodeInfo,
  PROTOCOL,
  type RefusedNode,
  RUNTIME,
  specFingerprint,
} from '../wire/control-messages.ts';
import type { NatsSettings } from './leadership.ts';
import type { ClusterTask, ClusterTasks } from './tasks.ts';

/**
 * The definition or SHA-256 of the coordinator's module file, and the SHA-256 of the ClusterSpec that
 * it expects; undefined if it expects none.
 */
export type Fingerprints = { module: string; spec: string | undefined };

/**
 * What the nodes of a coordinator must have.
 *
 * @throws (rejects) UnavailableError: there is no such file, and no definition takes its place
 */
export async function fingerprintsOf({
  module,
  definition,
  expect,
}: NatsSettings): Promise<Fingerprints> {
  if (definition === undefined && whyNoFile(module) !== undefined) {
    throw importError(module, undefined);
  }
  return {
    module: moduleFingerprint(module, definition),
    spec: expect && specFingerprint(expect),
  };
}

/** Memory that each thread of a node needs at least. */
const BYTES_PER_SLOT = 32 * 1024 * 1024;

/** A refusal that is also the phase of the task which the node would have got. */
type Mismatch = Refusal<RefusalPhase & TaskPhase>;

/** `task`: the task that the node would have got, which shows the reason. */
export type Refused =
  | { task: ClusterTask; refusal: Mismatch }
  | { task?: undefined; refusal: Refusal };

export function admit(
  info: NodeInfo,
  tasks: ClusterTasks,
  own: Fingerprints,
): ClusterTask | Refused {
  const task = tasks.find(info);
  if ('remedy' in task) return { refusal: task };
  const { job, index, session } = task;
  if (session !== undefined && !session.isReplaceableBy(info)) {
    const { host, pid } = session.info;
    return { refusal: refused.taskTaken(`${job}:${index}`, host, pid) };
  }
  const refusal = mismatchOf(info, own);
  if (refusal === undefined) return task;
  return tasks.has(task) ? { task, refusal } : { refusal };
}

/** Refuses a node that says something unprintable, `names`: it may be any node's. */
export function refuseUnprintable(info: NodeInfo, names: string[], tasks: ClusterTasks): Refused {
  const task = tasks.find(info);
  const refusal = refused.unprintable(names);
  const isFree = !('remedy' in task) && task.session === undefined && tasks.has(task);
  return isFree ? { task, refusal } : { refusal };
}

/** @returns undefined if the node fits the coordinator */
function mismatchOf(info: NodeInfo, own: Fingerprints): Mismatch | undefined {
  const { protocol, runtime, definition, spec, slots, freeMemory, host } = info;
  if (protocol !== PROTOCOL) return refused.otherProtocol(info, PROTOCOL);
  if (runtime.startsWith('bun ') !== RUNTIME.startsWith('bun '))
    return refused.otherRuntime(runtime, RUNTIME);
  if (definition !== own.module) {
    const isGiven = definition.startsWith('given:') || own.module.startsWith('given:');
    return refused[isGiven ? 'otherDefinition' : 'otherModule'](definition, own.module);
  }
  // Both specs are optional: a worker without --spec, and a coordinator without `expect`, fit any.
  if (spec !== undefined && own.spec !== undefined && spec !== own.spec) {
    return refused.otherSpec(spec, own.spec);
  }
  const needed = slots * BYTES_PER_SLOT;
  if (freeMemory < needed) return refused.tooLittleMemory(host, freeMemory, slots, needed);
  return undefined;
}

/** A refused node repeats its hello every second: after this time without a hello it is gone. */
const FORGOTTEN_MS = 5_000;
/** The most refused nodes that are kept: anybody may send hellos, and must not fill the memory. */
const MOST_NODES = 256;

type Entry = { heardAt: number; node: RefusedNode; task: ClusterTask | undefined };

/** The nodes that were refused and still send hellos: why, and since when. */
export class RefusedNodes {
  readonly #entries = new Map<string, Entry>();

  /** `task`: the task whose phase shows the refusal. */
  note(
    { node: id, job, task: wanted, host, pid }: NodeInfo,
    refusal: Refusal,
    task?: ClusterTask,
  ): void {
    const known = this.#entries.get(id);
    if (known === undefined && this.#entries.size >= MOST_NODES) return;
    const since = known?.node.phase === refusal.phase ? known.node.since : new Date();
    const place = { job, ...(wanted !== undefined && { task: wanted }), host, pid };
    const node = { ...place, since, ...refusal };
    this.#entries.set(id, { heardAt: performance.now(), node, task });
  }

  /** Forgets a node, because it was admitted. */
  forget(id: string): void {
    this.#entries.delete(id);
  }

  /**
   * Forgets the nodes that are gone.
   *
   * @returns true if a task showed the refusal of such a node, and is 'unregistered' again
   */
  expire(): boolean {
    let hasChanged = false;
    for (const [id, { heardAt, node, task }] of this.#entries) {
      if (performance.now() - heardAt < FORGOTTEN_MS) continue;
      this.#entries.delete(id);
      if (task === undefined || task.session !== undefined || task.phase !== node.phase) continue;
      const why = unregistered.refusedNodeGone(node.phase, node.remedy);
      hasChanged = task.enter('unregistered', why) || hasChanged;
    }
    return hasChanged;
  }

  get all(): RefusedNode[] {
    return [...this.#entries.values()].map(({ node }) => node);
  }
}
