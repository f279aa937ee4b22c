/** Files that are whole or not there, whenever the program or the machine dies. */

import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writes a new file, and has the system write it to the disk. It must not be there. */
export async function writeSynced(path: string, parts: readonly Uint8Array[]): Promise<void> {
  const file = await open(path, 'wx');
  try {
    for (const part of parts) await file.writeFile(part);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Has the system write a folder to the disk: the names in it. Windows writes them by itself. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Has `write` write the file `unfinished`, to the disk, and then gives it the name `path`, where
 * another file may have been. When it resolves, the new file survives the death of the machine.
 * When it rejects, there is no file `unfinished`.
 *
 * @param unfinished - a path on the file system of `path`
 */
export async function replaceFile(
  path: string,
  unfinished: string,
  write: (unfinished: string) => Promise<void>,
): Promise<void> {
  try {
    await write(unfinished);
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}
