/** Checkpoints as the files of a folder. */

import { type FileHandle, open, readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { makeFolder, replaceFile, writeSynced } from '../../base/synced-files.ts';
import { codeOf, messageOf } from '../../base/thrown-value.ts';
import { FailedPreconditionError, UnavailableError } from '../../errors/errors.ts';
import {
  type CheckpointFiles,
  type CheckpointSource,
  type CheckpointStore,
  NotACheckpoint,
} from './checkpoint-file.ts';

const UNFINISHED = /^checkpoint-\d{10,}-\d+\.unfinished$/;

/** Errors of this program or machine, which say nothing about a file. */
const OURS: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);

async function ofFile<T>(body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    if (error instanceof NotACheckpoint || OURS.has(codeOf(error))) {
      throw error;
    }
    throw new NotACheckpoint(messageOf(error), { cause: error });
  }
}

export class DirectoryStore implements CheckpointStore, CheckpointFiles {
  readonly #path: string;

  constructor(path: string) {
    this.#path = resolve(path); // the program may change its working directory
  }

  whereIs(name: string): string {
    return join(this.#path, name);
  }

  async use<T>(what: 'read' | 'written', body: (files: CheckpointFiles) => Promise<T>): Promise<T> {
    try {
      if (what === 'written') await makeFolder(this.#path);
      return await body(this);
    } catch (error) {
      if (error instanceof FailedPreconditionError) throw error;
      throw new UnavailableError(
        `The checkpoints in ${this.#path} could not be ${what}: ${messageOf(error)}`,
        { cause: error },
      );
    }
  }

  async list(): Promise<string[]> {
    return await readdir(this.#path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
  }

  async write(
    name: string,
    parts: readonly Uint8Array[],
    mayWrite: () => Promise<void>,
  ): Promise<void> {
    const path = this.whereIs(name);
    await replaceFile(path, `${path}.unfinished`, async (unfinished) => {
      await writeSynced(unfinished, parts);
      await mayWrite();
    });
  }

  async open(name: string): Promise<CheckpointSource> {
    return await ofFile(async () => {
      const file = await open(this.whereIs(name), 'r');
      try {
        const { size } = await file.stat();
        return {
          size,
          read: (into, at) => ofFile(() => readFully(file, into, at)),
          close: () => file.close(),
        };
      } catch (error) {
        await file.close();
        throw error;
      }
    });
  }

  async remove(name: string): Promise<void> {
    await rm(this.whereIs(name), { force: true });
  }

  async removeUnfinished(): Promise<void> {
    for (const name of await this.list()) if (UNFINISHED.test(name)) await this.remove(name);
  }
}

async function readFully(file: FileHandle, into: Uint8Array, at: number): Promise<void> {
  let done = 0;
  while (done < into.byteLength) {
    const { bytesRead } = await file.read(into, done, into.byteLength - done, at + done);
    if (bytesRead === 0) throw new NotACheckpoint('it was cut off while it was read');
    done += bytesRead;
  }
}
