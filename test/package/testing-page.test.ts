/** Holds docs/testing.md to what exists: a promise whose test was renamed or deleted is found here. */
import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = new URL('../..', import.meta.url).pathname;
const read = (path: string): string => readFileSync(`${root}/${path}`, 'utf8');
const page = read('docs/testing.md');
const allOf = (pattern: RegExp): string[] =>
  [...page.matchAll(pattern)].map((match) => match[1] as string);

describe('docs/testing.md', () => {
  it('names files and folders that exist', () => {
    const named = allOf(/`((?:lib|native|test|scripts|examples|docs|\.github)\/[\w./-]+)`/g);
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter((path) => !existsSync(`${root}/${path}`))).toEqual([]);
  });

  it('names npm scripts that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = allOf(/`npm (?:run )?([\w:]+)[^`]*`/g);
    expect(named).toContain('coverage');
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });

  it('links to files that exist', () => {
    const linked = allOf(/\]\(([^)#]+)[^)]*\)/g).map((path) => posix.join('docs', path));
    expect(linked).toContain('docs/semantics.md');
    expect(linked.filter((path) => !existsSync(`${root}/${path}`))).toEqual([]);
  });
});
