/** Runs the listings of docs/testing-your-program.md, as a reader would. */
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { publishedCopy } from '../support/published-copy.ts';

const page = readFileSync(new URL('../../docs/testing-your-program.md', import.meta.url), 'utf8');
/** The heading above each listing, its file if it has one, and its text. */
const listings = page.split(/^## /m).flatMap((part) => {
  const title = part.slice(0, part.indexOf('\n'));
  return [...part.matchAll(/^```js(?: file=(\S+))?\n([\s\S]*?)^```$/gm)].map(
    ([, file, text = '']) => ({ title, file, text }),
  );
});

describe('docs/testing-your-program.md', () => {
  const { folder } = publishedCopy({ compiled: true });
  for (const { file, text } of listings) {
    if (file !== undefined) writeFileSync(join(folder, file), text);
  }
  afterAll(() => rmSync(folder, { recursive: true }));
  const programs = listings.filter(({ file }) => file === undefined);

  it('has a program for each helper that needs no server', () => {
    expect(programs.map(({ title }) => title)).toEqual([
      'With vitest, Jest and node:test',
      'A stop at each step: tripAfter',
      'A thread in the middle of its work: Gate',
      'A thread that does not end: fakeStraggler',
      'A worker that dies: killWorker',
    ]);
  });

  it.each(programs)('$title: the program ends without an error', ({ text }) => {
    writeFileSync(join(folder, 'listing.mjs'), text);
    const { status, stderr } = spawnSync(process.execPath, ['listing.mjs'], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});
