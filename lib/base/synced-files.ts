/** Files that are whole or not there, whenever the program or the machine dies. */

import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from './thrown-value.ts';

/**
 * Makes a folder, and its ancestors that are missing. Others may make them at the same time.
 *
 * Not `mkdir` with `recursive`: below a folder where nothing can be made and the system says
 * ENOENT, as Linux does in /proc, it tries again without end.
 *
 * @returns whether it was made here
 */
export async function makeFolder(path: string): Promise<boolean> {
  const parent = dirname(path);
  try {
    return await makeIn(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' || parent === path) throw error;
  }
  await makeFolder(parent);
  return await makeIn(path);
}

/** As `makeFolder`, in a folder that is there. */
async function makeIn(path: string): Promise<boolean> {
  try {
    await mkdir(path);
    return true;
  } catch (error) {
    const found = await stat(path).catch(() => undefined);
    if (found?.isDirectory() !== true) throw error;
    return false;
  }
}

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
