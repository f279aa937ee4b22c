/** Text that fits the terminal: help is wrapped, and so are the tables of `table.ts`. */

import { endOfPiece } from '../../coordinator/words.ts';

/** The width where the stream is not a terminal. */
const PIPED = 80;
const NARROWEST = 40;
/** Longer lines of prose are hard to read, however wide the terminal is. */
const WIDEST_PROSE = 100;

/** Where a text goes: stdout or stderr. */
export type Output = { columns?: number };

/** The columns of the terminal at `output`; 80 for a pipe or a file. */
export function columns({ columns: own }: Output = process.stdout): number {
  return typeof own === 'number' && own > 0 ? Math.max(own, NARROWEST) : PIPED;
}

/** The width of help and other prose. */
export const proseWidth = (output: Output): number => Math.min(columns(output), WIDEST_PROSE);

/** A word that is longer than a line of the terminal, in pieces. In a pipe it stays whole. */
function piecesOf(word: string, width: number): string[] {
  if (!process.stdout.isTTY) return [word];
  const pieces: string[] = [];
  let rest = word;
  while (rest.length > width) {
    const end = endOfPiece(rest, 0, width);
    pieces.push(rest.slice(0, end));
    rest = rest.slice(end);
  }
  return [...pieces, rest];
}

/** The words in lines of at most `width`; a longer word has a line of its own. */
function linesOf(words: readonly string[], width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of words) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

const wordsOf = (text: string): string[] => text.split(/[ \n]+/).filter((each) => each !== '');

/**
 * Breaks `text` at spaces into lines of at most `width`. On a terminal, a word that is longer (a
 * path) is broken, too.
 */
export function wrapped(text: string, width: number): string[] {
  return linesOf(
    wordsOf(text).flatMap((each) => piecesOf(each, width)),
    width,
  );
}

/**
 * A command of the shell, as an example: where it is too long, it goes on after a backslash. No word
 * is broken, so that the command can be copied.
 */
export function shellExample(command: string, width: number): string {
  // A no-break space keeps each option with its value.
  const parts = command.replaceAll(/(?<= -[a-z-]+) (?=[^- ])/g, '\u00A0');
  const lines = linesOf(wordsOf(parts), width - '    '.length - ' \\'.length);
  return `  ${lines.join(' \\\n    ').replaceAll('\u00A0', ' ')}`;
}

/**
 * Paragraphs, which blank lines separate, as one line each: commander wraps them. A line that begins
 * with two spaces stays a line.
 */
export const unwrapped = (text: string): string => text.replaceAll(/(?<!\n)\n(?!\n| {2})/g, ' ');
