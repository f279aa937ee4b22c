/** What a node has to be, to have a part in a run. */

import type { Explanation } from './connection-failure.ts';
import { type NodeInfo, PROTOCOL, RUNTIME } from './wire.ts';

/** Why a node is not let in. */
export type Unfit = { phase: string } & Explanation;

/** How much of a machine's memory a thread needs at least. */
const BYTES_PER_SLOT = 32 * 1024 * 1024;

const isBun = (runtime: string): boolean => runtime.startsWith('bun ');

const megabytes = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MB`;

/** `definition`: that of the coordinator's module. Undefined: it is as it has to be. */
export function whyUnfit(info: NodeInfo, definition: string): Unfit | undefined {
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
  if (info.definition !== definition) {
    const [theirs, ours] = [info.definition, definition].map((hash) => hash.slice(0, 12));
    return {
      phase: 'definition-mismatch',
      cause: `the worker's module is not the coordinator's: ${theirs} there, ${ours} here`,
      remedy: 'deploy the same file, and start the worker again',
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
