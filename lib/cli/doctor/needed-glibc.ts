/** The version of glibc that a native binary needs, as the binary itself says. */

import { readFileSync } from 'node:fs';

/** The names of the versions of glibc's symbols stand in the binary as text. */
const VERSION = /GLIBC_(\d+)\.(\d+)(?![\d.])/g;

/** @returns "2.36"; undefined if the file cannot be read or needs no glibc */
export function neededGlibc(path: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
  const minors = [...text.matchAll(VERSION)]
    .filter(([, major]) => major === '2')
    .map(([, , minor]) => Number(minor));
  return minors.length === 0 ? undefined : `2.${Math.max(...minors)}`;
}
