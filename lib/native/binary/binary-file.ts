/**
 * Looks into a binary before it is loaded: loading some files would end the process, or block
 * it for good.
 */

import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';

/** The file is not an addon of allstop that can be loaded. The message is the cause, for people. */
export class UnfitError extends Error {}

/** @throws UnfitError; the error of the file system */
export function checkFile(path: string): void {
  if (!path.endsWith('.node')) throw new UnfitError('the name of a native addon ends in .node');
  const stats = statSync(path);
  if (stats.isDirectory()) throw new UnfitError('it is a directory');
  // Opening a FIFO would block for good.
  if (!stats.isFile()) throw new UnfitError('it is not a regular file');
  // Linux also maps the missing end of a truncated file; reading there is a SIGBUS.
  if (process.platform === 'linux' && readElf(path)?.isWhole === false) {
    throw new UnfitError('it is damaged: its end is missing');
  }
}

const PT_LOAD = 1;
const PT_INTERP = 3;
const PROGRAM_HEADER = 56; // bytes

export type Elf = {
  /** The path of the dynamic loader that a program names; a library names none. */
  interpreter: string | undefined;
  /** Whether the file has every byte that the system will map into memory. */
  isWhole: boolean;
};

const isElf64LittleEndian = (header: Buffer): boolean =>
  header.length === 64 &&
  header.toString('latin1', 0, 6) === '\x7fELF\x02\x01' &&
  header.readUInt16LE(54) === PROGRAM_HEADER;

/**
 * Reads the program headers of an ELF file.
 *
 * @returns undefined if the file is not a 64-bit, little-endian ELF file
 * @throws the error of the file system
 */
export function readElf(path: string): Elf | undefined {
  const file = openSync(path, 'r');
  try {
    const read = (position: number, length: number): Buffer => {
      const bytes = Buffer.alloc(length);
      return bytes.subarray(0, readSync(file, bytes, 0, length, position));
    };
    const header = read(0, 64);
    if (!isElf64LittleEndian(header)) return undefined;
    const { size: fileSize } = fstatSync(file);
    const at = Number(header.readBigUInt64LE(32));
    const length = PROGRAM_HEADER * header.readUInt16LE(56);
    if (at + length > fileSize) return { interpreter: undefined, isWhole: false };
    const programs = read(at, length);
    const found: Elf = { interpreter: undefined, isWhole: true };
    for (let each = 0; each < length; each += PROGRAM_HEADER) {
      const type = programs.readUInt32LE(each);
      const from = Number(programs.readBigUInt64LE(each + 8));
      const size = Number(programs.readBigUInt64LE(each + 32));
      const isThere = from + size <= fileSize;
      if (type === PT_LOAD && !isThere) found.isWhole = false;
      if (type === PT_INTERP && isThere) found.interpreter = read(from, size).toString('latin1');
    }
    return found;
  } finally {
    closeSync(file);
  }
}
