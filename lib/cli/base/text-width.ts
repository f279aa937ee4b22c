/** Text that fits the terminal: help is wrapped, and so are the tables of `table.ts`. */

/** The width where stdout is not a terminal. */
const PIPED = 80;
const NARROWEST = 40;
/** Longer lines of prose are hard to read, however wide the terminal is. */
const WIDEST_PROSE = 100;

/** The columns of the terminal at stdout; 80 for a pipe or a file. */
export function columns(): number {
  const { columns: own } = process.stdout as { columns?: number };
  return typeof own === 'number' && own > 0 ? Math.max(own, NARROWEST) : PIPED;
}

/** The width of help and other prose. */
export const proseWidth = (): number => Math.min(columns(), WIDEST_PROSE);

/** Breaks `text` at spaces into lines of at most `width`. A word that is longer stays whole. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/[ \n]+/).filter((each) => each !== '')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/**
 * Wraps paragraphs, which blank lines separate. A line that begins with two spaces is taken as it is.
 */
export function paragraphs(text: string, width: number): string {
  return text
    .split('\n\n')
    .map((paragraph) => {
      const lines: string[] = [];
      let prose: string[] = [];
      const flush = (): void => {
        if (prose.length > 0) lines.push(...wrapped(prose.join(' '), width));
        prose = [];
      };
      for (const line of paragraph.split('\n')) {
        if (line.startsWith('  ')) {
          flush();
          lines.push(line);
        } else prose.push(line);
      }
      flush();
      return lines.join('\n');
    })
    .join('\n\n');
}

/** Terms and their explanations, in two columns that fit `width`. */
export function definitions(
  entries: readonly (readonly [string, string])[],
  width: number,
): string {
  const longest = Math.max(...entries.map(([term]) => term.length));
  const left = Math.min(longest, Math.floor(width / 3));
  const indent = ' '.repeat(left + 4);
  return entries
    .map(([term, text]) => {
      const [first = '', ...rest] = wrapped(text, width - left - 4);
      const head = `  ${term.padEnd(left)}`;
      const lines = rest.map((line) => `${indent}${line}`);
      const own = term.length > left ? [head, `${indent}${first}`] : [`${head}  ${first}`];
      return [...own, ...lines].map((line) => `${line.trimEnd()}\n`).join('');
    })
    .join('');
}
