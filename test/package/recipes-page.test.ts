/**
 * Holds docs/recipes.md to the programs of examples/: each listing is a part of the file that it names.
 * The first recipe is a whole program, which `node scripts/test-documents.mjs` runs.
 */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const page = read('docs/recipes.md');

describe('docs/recipes.md', () => {
  const listings = [...page.matchAll(/^```js fragment file=(.*)\n([^]*?)^```$/gm)];

  it.each(listings.map(([, file, text]) => [file as string, text as string]))(
    'has a listing that is in %s',
    (file, text) => {
      expect(read(file)).toContain(text);
    },
  );

  it('has no other blocks after the first recipe, and a listing of each program that it names', () => {
    const rest = page.slice(page.indexOf('## A server of several parts'));
    expect(rest.match(/^```\w/gm)).toHaveLength(listings.length);
    const named = new Set([...page.matchAll(/`(examples\/\w+)`/g)].map(([, folder]) => folder));
    const shown = new Set(listings.map(([, file]) => file?.split('/').slice(0, 2).join('/')));
    expect(shown).toEqual(named);
  });

  it('names scripts that exist', () => {
    for (const [script] of page.matchAll(/bench\/[\w-]+\.mjs/g)) {
      expect(existsSync(new URL(script, root)), script).toBe(true);
    }
  });
});
