/** Where checkpoints are kept. */

import { mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile, writeSynced } from '../../base/synced-files.ts';
import type { CheckpointSource } from './checkpoint-file.ts';

/** Rejections are of any class: `Checkpoint` makes an UnavailableError of each. */
export interface CheckpointStore {
  /** For messages, after "the checkpoints". */
  readonly where: string;
  /** The names of all that is there, saves or not. */
  names(): Promise<string[]>;
  /** Where the save of this name is, for people. */
  pathOf(name: string): string;
  /** When it resolves, the save is whole and stays; until then there is none of this name. */
  write(name: string, pieces: readonly Uint8Array[]): Promise<void>;
  /** Calls `use` with the bytes of the save. */
  read<T>(name: string, use: (source: CheckpointSource) => Promise<T>): Promise<T>;
  remove(name: string): Promise<void>;
}

const UNFINISHED = /^checkpoint-\d{10,}-\d+\.unfinished$/;

/** Files in a folder. */
export class CheckpointFolder implements CheckpointStore {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  get where(): string {
    return `in ${this.#directory}`;
  }

  async names(): Promise<string[]> {
    return await readdir(this.#directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
  }

  pathOf(name: string): string {
    return join(this.#directory, name);
  }

  async write(name: string, pieces: readonly Uint8Array[]): Promise<void> {
    await mkdir(this.#directory, { recursive: true });
    // What saves of a killed program have left.
    for (const each of await this.names()) if (UNFINISHED.test(each)) await this.remove(each);
    const path = this.pathOf(name);
    await replaceFile(path, `${path}.unfinished`, (unfinished) => writeSynced(unfinished, pieces));
  }

  async read<T>(name: string, use: (source: CheckpointSource) => Promise<T>): Promise<T> {
    const file = await open(this.pathOf(name), 'r');
    try {
      const { size } = await file.stat();
      const read = async (into: Uint8Array, at: number): Promise<number> =>
        (await file.read(into, 0, into.byteLength, at)).bytesRead;
      return await use({ size, read });
    } finally {
      await file.close();
    }
  }

  async remove(name: string): Promise<void> {
    await rm(this.pathOf(name), { force: true });
  }
}
