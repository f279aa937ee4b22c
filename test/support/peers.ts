/** A project of its own, in which an example finds allstop and packages that allstop does not need. */

import { cpSync, rmSync, symlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = `${root}build-bench`;

type Peers = {
  fetchPeers(): void;
  compilePeer(name: string, binary: string): void;
  importPeer(name: string): Promise<unknown>;
};

/** Fetches the packages of bench/peers.mjs, once for a checkout. */
export async function fetchPeers(): Promise<Peers> {
  const peers = (await import('../../bench/peers.mjs' as string)) as Peers;
  peers.fetchPeers();
  const own = `${folder}/node_modules/allstop`;
  try {
    symlinkSync(root, own, 'dir');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return peers;
}

/** Copies a folder of examples/ to where it finds the peers. @returns the copy, from the root on */
export function withPeers(example: string): string {
  rmSync(`${folder}/${example}`, { recursive: true, force: true });
  cpSync(`${root}examples/${example}`, `${folder}/${example}`, { recursive: true });
  return `build-bench/${example}`;
}
