/** What Linux executes and loads, as far as is looked into here. */

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

const PT_LOAD = 1;
const PT_INTERP = 3;
const PROGRAM_HEADER = 56; // bytes

export type Elf = {
  /** The dynamic loader that a program names; a library names none. */
  interpreter: string | undefined;
  /** Whether all is there that is mapped into memory. */
  isWhole: boolean;
};

/** And with the low byte first. */
const isOf64Bits = (header: Buffer): boolean =>
  header.length === 64 &&
  header.toString('latin1', 0, 6) === '\x7fELF\x02\x01' &&
  header.readUInt16LE(54) === PROGRAM_HEADER;

/**
 * Undefined for what is no ELF file of 64 bits.
 *
 * @throws what the file system says
 */
export function readElf(path: string): Elf | undefined {
  const file = openSync(path, 'r');
  try {
    const read = (position: number, length: number): Buffer => {
      const bytes = Buffer.alloc(length);
      return bytes.subarray(0, readSync(file, bytes, 0, length, position));
    };
    const header = read(0, 64);
    if (!isOf64Bits(header)) return undefined;
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
