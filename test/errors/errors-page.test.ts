/** docs/errors.md tells of every error and warning that the package has, in the words of its code. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as allstop from 'allstop';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs/errors.md'), 'utf8');
/** All of lib/ but its doc comments, with strings that are put together from lines made one. */
const sources = readdirSync(join(root, 'lib'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(join(root, 'lib', name), 'utf8'))
  .join('\n')
  .replaceAll(/^ *\*.*$/gm, '') // an example may throw an error of ours, with a message of its own
  .replaceAll(/['`"] \+\s*['`"]/g, '');

const errors = Object.values(allstop).filter(
  (each): each is typeof allstop.AllstopError =>
    typeof each === 'function' && each.prototype instanceof Error,
);

describe('the error classes', () => {
  it.each(['cluster', 'pool', 'nats', 'testing', 'sqlite', 'http'])(
    'are exported by allstop/%s',
    async (entry) => {
      const exported = (await import(`allstop/${entry}`)) as Record<string, unknown>;
      for (const each of errors) expect(exported[each.name], each.name).toBe(each);
    },
  );
});

describe('docs/errors.md', () => {
  it.each(errors.map((each) => each.name))('has the class %s', (name) => {
    expect(page).toContain(`\`${name}\``);
  });

  it.each([...new Set(sources.match(/ERR_ALLSTOP[A-Z_]*(?=')/g))])('has the code %s', (code) => {
    expect(page).toContain(`| \`${code}\` |`);
  });

  it.each([...new Set(sources.match(/(?<=code: ')ALLSTOP_[A-Z_]+(?=')/g))])(
    'has the warning %s',
    (code) => expect(page).toContain(`| \`${code}\` |`),
  );

  const messages = page.split('## Messages')[1]?.split('## Warnings')[0] ?? '';
  const texts = [...messages.matchAll(/^\| (?:`` (.+?) ``|`([^`]+)`)/gm)].map(
    ([, withTicks, text]) => withTicks ?? text ?? '',
  );

  it.each(texts)('has a message of the code: %s', (text) => {
    // A word in capitals stands for what the code puts in, as does 'pool', the kind of thread or the method.
    const parts = text
      .split(/'?\b(?:NAME|N)\b'?|^enqueue|^The (?:thread|looper|pool) |(?<= makes a )pool/)
      .map((part) => part.trim())
      .filter((part) => part.length > 8);
    expect(parts.length).toBeGreaterThan(0);
    for (const part of parts) expect(sources).toContain(part);
  });

  /** What of a message stands in the code as it is. */
  const partsOf = (text: string): string[] =>
    text
      .replaceAll("\\'", "'")
      .split(/\$\{[^}]*\}/)
      .map((part) =>
        part
          .replaceAll('`', '')
          .replace(/^[^\w.]+/, '')
          .trim()
          .slice(0, 40)
          .trim(),
      )
      .filter((part) => part.length > 10);
  const ours = [...sources.matchAll(/new (\w+Error)\(\s*(['`"])((?:\\.|(?!\2)[^\\])+)\2/g)]
    .map(([, name, , text = '']) => ({ name, parts: partsOf(text) }))
    .filter(({ name, parts }) => errors.some((each) => each.name === name) && parts.length > 0);
  const rows = messages.replaceAll('`', '').split('\n');

  it.each(ours)('tells of the message of $name: $parts', ({ name, parts }) => {
    const told = rows.filter((row) => parts.some((part) => row.includes(part)));
    const Class = errors.find((each) => each.name === name) as new (message: string) => Error;
    const { code } = new Class('') as allstop.AllstopError;
    expect(told.map((row) => row.split(' | ').at(-2))).toContain(code);
  });

  it('has many messages', () => expect(texts.length).toBeGreaterThan(25));
});
