/** Checks the docstrings of the public types of options, as an editor shows them: in dist/. */
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { parseAst } from 'rolldown/parseAst';
import { describe, expect, it } from 'vitest';

type Node = { type: string; start: number } & Record<string, unknown>;
type Option = { name: string; isOptional: boolean; docstring: string };
type Declaration = { node: Node; text: string };
/** Several by one name: `RunOptions` of the coordinator, and of the cluster. */
type Declarations = Map<string, Declaration[]>;

const root = new URL('../..', import.meta.url).pathname;
const SPECIFIER = /(?:\bfrom|\bimport\(?)\s*['"](\.{1,2}\/[^'"]+)\.[jt]s['"]/g;
/** What the docstring of an optional property says of a call without it. */
const SAYS_DEFAULT = /\bdefaults?\b|\bleft out\b/i;

/** The path and the text of each .d.ts file that an entry point reaches. */
function reachedFiles(): Map<string, string> {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, { types?: string }>;
  };
  const reached = new Map<string, string>();
  const visit = (path: string): void => {
    if (reached.has(path) || !existsSync(join(root, path))) return;
    const text = readFileSync(join(root, path), 'utf8');
    reached.set(path, text);
    for (const [, file] of text.matchAll(SPECIFIER))
      visit(posix.join(posix.dirname(path), `${file}.d.ts`));
  };
  for (const { types } of Object.values(exports)) {
    if (types?.startsWith('./dist/') === true) visit(posix.normalize(types));
  }
  return reached;
}

/** The type aliases and interfaces of the files, by name. */
function declarationsOf(texts: Iterable<string>): Declarations {
  const found: Declarations = new Map();
  for (const text of texts) {
    for (const statement of parseAst(text, { lang: 'dts' }).body as unknown as Node[]) {
      const node = (statement['declaration'] ?? statement) as Node;
      if (node.type !== 'TSTypeAliasDeclaration' && node.type !== 'TSInterfaceDeclaration')
        continue;
      const { name } = node['id'] as { name: string };
      found.set(name, [...(found.get(name) ?? []), { node, text }]);
    }
  }
  return found;
}

/** The comment that ends where the code at `start` begins; '' if there is none. */
function docstringBefore(text: string, start: number): string {
  const before = text.slice(0, start).trimEnd();
  if (!before.endsWith('*/')) return '';
  const comment = before.slice(before.lastIndexOf('/**'));
  return comment
    .replaceAll(/^\/\*\*|\*\/$|^\s*\*/gm, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

/**
 * The options that a type declares: its own, those of the sides of `&` and `|`, and those of each
 * type of `declarations` that it names.
 */
function optionsOf({ node, text }: Declaration, declarations: Declarations): Option[] {
  const inside = (each: Node): Option[] => optionsOf({ node: each, text }, declarations);
  switch (node.type) {
    case 'TSTypeAliasDeclaration':
      return inside(node['typeAnnotation'] as Node);
    case 'TSInterfaceDeclaration':
      return inside(node['body'] as Node);
    case 'TSIntersectionType':
    case 'TSUnionType':
      return (node['types'] as Node[]).flatMap(inside);
    case 'TSTypeReference': {
      const named = declarations.get((node['typeName'] as { name: string }).name) ?? [];
      const near = named.filter((each) => each.text === text);
      return (near.length > 0 ? near : named).flatMap((each) => optionsOf(each, declarations));
    }
    case 'TSTypeLiteral':
    case 'TSInterfaceBody':
      return ((node['members'] ?? node['body']) as Node[])
        .filter((member) => member.type === 'TSPropertySignature')
        .map((member) => ({
          name: (member['key'] as { name: string }).name,
          isOptional: member['optional'] === true,
          docstring: docstringBefore(text, member.start),
        }));
    default:
      return [];
  }
}

/** The options of the types that an index.d.ts exports and whose names end in `Options`. */
function publicOptions(files: ReadonlyMap<string, string>): Option[] {
  const declarations = declarationsOf(files.values());
  const exported = [...files]
    .filter(([path]) => path.endsWith('/index.d.ts'))
    .flatMap(([, text]) => text.match(/\b\w*Options\b(?=[^{}]*\} from )/g) ?? []);
  return [...new Set(exported)].flatMap((type) =>
    (declarations.get(type) ?? [])
      .flatMap((declaration) => optionsOf(declaration, declarations))
      .map((option) => ({ ...option, name: `${type}.${option.name}` })),
  );
}

const namesOf = (options: readonly Option[]): string[] => options.map(({ name }) => name);
const withoutDocstring = (options: readonly Option[]): string[] =>
  namesOf(options.filter(({ docstring }) => docstring === ''));
const withoutDefault = (options: readonly Option[]): string[] =>
  namesOf(
    options.filter(({ isOptional, docstring }) => isOptional && !SAYS_DEFAULT.test(docstring)),
  );

describe('a programmer who points at an option in an editor', () => {
  const options = publicOptions(reachedFiles());

  it('reads what the option means', () => {
    expect(withoutDocstring(options)).toEqual([]);
  });

  it('reads what happens without the option, if it may be left out', () => {
    expect(withoutDefault(options)).toEqual([]);
  });

  it('finds the options of every entry point, and those that a type takes from another', () => {
    expect(namesOf(options)).toEqual(
      expect.arrayContaining([
        'JoinOptions.signal', // allstop
        'RunOptions.name', // of CoordinatorOptions
        'ReadyOptions.timeoutMs', // allstop/cluster
        'CheckpointOptions.bucket', // of one side of a union
        'NatsTlsOptions.caFile', // allstop/nats
        'GateWaitOptions.signal', // allstop/testing
        'ObeyOptions.everySteps', // allstop/sqlite
      ]),
    );
  });
});

describe('an option', () => {
  const of = (type: string): Option[] =>
    publicOptions(
      new Map([
        ['dist/index.d.ts', "export type { OneOptions } from './one.js';"],
        ['dist/one.d.ts', `type Base = { /** As Base says. */ base: URL };\n${type}`],
      ]),
    );

  it('without a docstring is named, though the option before it has one', () => {
    const options = of('export type OneOptions = Base & { /** Of a. */ a: 1;\n b: 2 };');
    expect(withoutDocstring(options)).toEqual(['OneOptions.b']);
  });

  it('that is optional is named if its docstring does not say the default', () => {
    const options = of(`export interface OneOptions {
      /** Milliseconds. Default: 5. */ a?: number;
      /** Milliseconds (5). */ b?: number;
      /** Milliseconds. */ c: number;
    }`);
    expect(withoutDefault(options)).toEqual(['OneOptions.b']);
  });
});
