/**
 * Checks the rules of docs/abi.md: within a major version the C interface only grows at its end,
 * and every change has a new version number.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

type Declarations = {
  typedefs: string[];
  /** The fields of each struct, in their order. */
  structs: Record<string, string[]>;
  /** The macros whose value is a number. */
  macros: Record<string, string>;
};

const root = new URL('../..', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');

/** Structs without a `size` field. No field may ever be appended to these. */
const FIXED = [
  'allstop_string',
  'allstop_coordinator',
  'allstop_queue',
  'allstop_item',
  'allstop_variable',
];

/** The text on one line, with spaces only where C needs them. */
function normalized(text: string): string {
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?([^\w ]) ?/g, '$1')
    .trim();
}

function declarationsOf(header: string): { version: string; declarations: Declarations } {
  const text = header
    .replaceAll(/\/\*[\s\S]*?\*\//g, ' ')
    .replaceAll(/\\\n/g, ' ')
    .replaceAll(/\/\/.*$/gm, ' ');
  const structs: Declarations['structs'] = {};
  const rest = text.replaceAll(
    /typedef\s+struct\s+(\w+)\s*\{([^}]*)\}\s*\w+\s*;/g,
    (_, name: string, body: string) => {
      structs[name] = body.split(';').map(normalized).filter(Boolean);
      return '';
    },
  );
  const macros: Declarations['macros'] = {};
  for (const [, name, value] of text.matchAll(/^#define[ \t]+(ALLSTOP_\w+)[ \t]+(\S.*)$/gm)) {
    if (/\d/.test(value as string)) macros[name as string] = normalized(value as string);
  }
  const { ALLSTOP_ABI_MAJOR: major, ALLSTOP_ABI_MINOR: minor, ...numbers } = macros;
  const typedefs = [...rest.matchAll(/^typedef[^;]*;/gm)].map(([typedef]) => normalized(typedef));
  return {
    version: `${Number.parseInt(major ?? '', 10)}.${Number.parseInt(minor ?? '', 10)}`,
    declarations: { typedefs, structs, macros: numbers },
  };
}

const recorded: Record<string, Declarations> = JSON.parse(read('test/fixtures/abi.json'));
const header = ['allstop_abi.h', 'allstop.h', 'allstop_queue.h', 'allstop_variable.h']
  .map((name) => read(`native/include/allstop/${name}`))
  .join('');
const today = declarationsOf(header);
const frozen = declarationsOf(read('test/native/library/allstop_1_0_frozen.h'));

const byVersion = (one: string, other: string): number =>
  one.localeCompare(other, 'en', { numeric: true });
const versions = Object.keys(recorded).toSorted(byVersion);
const pairs = versions
  .flatMap((older, i) => versions.slice(i + 1).map((newer): [string, string] => [older, newer]))
  .filter(([older, newer]) => older.split('.')[0] === newer.split('.')[0]);

const CHANGED = `allstop.h is not what test/fixtures/abi.json says of ${today.version}.
If the version is released, a change needs a new one: raise ALLSTOP_ABI_MINOR (only
appended to) or ALLSTOP_ABI_MAJOR (anything else), see docs/abi.md.
Then record it: put what is printed below under the version into the fixture, leave
the older entries as they are, and add a row to the history in docs/abi.md.

"${today.version}": ${JSON.stringify(today.declarations, null, 2)}
`;

describe('allstop.h', () => {
  it('is what is recorded of its version', () => {
    expect(today.declarations, CHANGED).toEqual(recorded[today.version]);
  });

  it('has the newest version that is recorded', () => {
    expect(today.version, 'A version is never taken back').toBe(versions.at(-1));
  });

  it('was in 1.0 what the frozen copy says, so the entry has not been edited', () => {
    expect(frozen.version).toBe('1.0');
    expect(recorded['1.0']).toEqual(frozen.declarations);
  });

  it('has all its structs under this test', () => {
    const named = [...header.matchAll(/^\} (\w+);/gm)].map(([, name]) => name);
    expect(Object.keys(today.declarations.structs)).toEqual(named);
    expect(named).toContain('allstop_table');
  });

  it('begins every struct that may grow with its size', () => {
    for (const [name, fields] of Object.entries(today.declarations.structs)) {
      if (!FIXED.includes(name)) expect(fields[0], name).toBe('uint32_t size');
    }
  });

  it('has its history in docs/abi.md', () => {
    for (const version of versions) expect(read('docs/abi.md')).toContain(`| ${version} |`);
  });
});

describe.each(pairs)('from %s to %s', (older, newer) => {
  const before = recorded[older] as Declarations;
  const after = recorded[newer] as Declarations;
  const rule =
    'Within a major version nothing is changed, moved or removed (docs/abi.md): append, or raise ALLSTOP_ABI_MAJOR';

  it.each(Object.keys(before.structs))('%s is only appended to', (name) => {
    const fields = before.structs[name] as string[];
    const kept = FIXED.includes(name)
      ? after.structs[name]
      : after.structs[name]?.slice(0, fields.length);
    // A field that was reserved, and so 0, may be given a meaning and a name; not another type.
    const named = fields.map((field, i) => {
      const type = /^(.*) reserved$/.exec(field)?.[1];
      const now = kept?.[i];
      return type !== undefined && now?.startsWith(`${type} `) === true ? now : field;
    });
    expect(kept, `${rule}: ${name}`).toEqual(named);
  });

  it('every number and every type is kept', () => {
    expect(after.macros, rule).toMatchObject(before.macros);
    expect(after.typedefs, rule).toEqual(expect.arrayContaining(before.typedefs));
  });
});
