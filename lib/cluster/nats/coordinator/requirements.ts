/** What a node has to be, to have a part in a run. */

import type { Explanation } from '../connection/connection-failure.ts';
import { type NodeInfo, PROTOCOL, RUNTIME } from '../wire/control-messages.ts';

/** Why a node is not let in. */
export type Refusal = { phase: string } & Explanation;

/** How much of a machine's memory a thread needs at least. */
const BYTES_PER_SLOT = 32 * 1024 * 1024;

const isBun = (runtime: string): boolean => runtime.startsWith('bun ');

const megabytes = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MB`;

/** What the coordinator has: the hashes of its module, and of the spec that it expects. */
export type Fingerprints = { module: string; spec?: string | undefined };

const short = (hash: string): string => hash.slice(0, 12);

/** Undefined: it is as it has to be. */
export function whyUnfit(info: NodeInfo, own: Fingerprints): Refusal | undefined {
  const { protocol, version, slots, freeMemory, host } = info;
  if (protocol !== PROTOCOL) {
    return {
      phase: 'version-mismatch',
      cause: `the worker speaks protocol ${protocol} (allstop ${version}), the coordinator ${PROTOCOL}`,
      remedy: 'install the same version of allstop on both',
    };
  }
  if (isBun(info.runtime) !== isBun(RUNTIME)) {
    return {
      phase: 'version-mismatch',
      cause: `the worker runs on ${info.runtime}, the coordinator on ${RUNTIME}: they write values in different ways`,
      remedy: 'run both on Bun, or none',
    };
  }
  if (info.definition !== own.module) {
    return {
      phase: 'definition-mismatch',
      cause: `the worker's module is not the coordinator's: ${short(info.definition)} there, ${short(own.module)} here`,
      remedy: 'deploy the same file, and start the worker again',
    };
  }
  // Either may know of none.
  if (info.spec !== undefined && own.spec !== undefined && info.spec !== own.spec) {
    return {
      phase: 'spec-mismatch',
      cause: `the worker's ClusterSpec is not the coordinator's: ${short(info.spec)} there, ${short(own.spec)} here`,
      remedy: 'give the worker the same --spec, and start it again',
    };
  }
  const needed = slots * BYTES_PER_SLOT;
  if (freeMemory < needed) {
    return {
      phase: 'insufficient-resources',
      cause: `${host} has ${megabytes(freeMemory)} of free memory, and ${slots} threads need ${megabytes(needed)}`,
      remedy: 'start the worker with fewer --slots, or free memory',
    };
  }
  return undefined;
}
