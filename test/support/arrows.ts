/**
 * Which room of the house may import which, as the table in ARCHITECTURE.md says. A room is
 * a folder; the row with the longest path that fits a file is that file's row.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

const root = new URL('../..', import.meta.url).pathname;

export type Arrow = { from: string; to: string };

/**
 * One row of the table: what a room may import. `*` stands for every other room, `ROOM+` for
 * that room and all that it may import.
 */
type Row = { room: string; mayImport: string[] };

function rowsOf(document: string): Row[] {
  const table = /<!-- arrows -->([\s\S]*?)<!-- end of arrows -->/.exec(document)?.[1] ?? '';
  return table
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => {
      const [room, , mayImport] = line.split('|').slice(1, -1) as [string, string, string];
      const names = (cell: string): string[] =>
        [...cell.matchAll(/`([^`]+)`/g)].map((m) => m[1] as string);
      return { room: names(room)[0] as string, mayImport: names(mayImport) };
    });
}

export class Arrows {
  readonly #rows: Row[];

  constructor(document: string = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')) {
    this.#rows = rowsOf(document);
  }

  get rooms(): string[] {
    return this.#rows.map(({ room }) => room);
  }

  /**
   * The room of a file; '' of a package, and of a file in a folder without a row. A room that
   * has rooms inside it holds only the files that lie directly in its folder.
   */
  roomOf(file: string): string {
    const { rooms } = this;
    const holds = (room: string): boolean =>
      rooms.some((inner) => inner.startsWith(`${room}/`))
        ? posix.dirname(file) === room
        : file.startsWith(`${room}/`);
    const fitting = rooms.filter(holds);
    return fitting.reduce((longest, room) => (room.length > longest.length ? room : longest), '');
  }

  /** The row's list as it stands in the table. */
  #listOf(room: string): string[] {
    return this.#rows.find((row) => row.room === room)?.mayImport ?? [];
  }

  #mayImport(room: string): string[] {
    return this.#listOf(room).flatMap((entry) => {
      if (!entry.endsWith('+')) return entry;
      const below = entry.slice(0, -1);
      return [below, ...this.#mayImport(below)];
    });
  }

  #isAllowed(room: string, target: string): boolean {
    const allowed = this.#mayImport(room);
    const targetRoom = this.roomOf(target);
    if (allowed.includes(target)) return true;
    if (targetRoom === '') return false; // a package
    const isForAll = allowed.includes('*') && targetRoom !== 'lib/cli';
    return targetRoom === room || allowed.includes(targetRoom) || isForAll;
  }

  /** Why the import is forbidden, and where what it needs belongs; undefined if it is allowed. */
  objection({ from, to }: Arrow): string | undefined {
    const room = this.roomOf(from);
    if (room === '')
      return `${from} is in no room of ARCHITECTURE.md's table: give its folder a row`;
    if (this.#isAllowed(room, to)) return undefined;
    const target = this.roomOf(to);
    const allowed = this.#listOf(room);
    const list = allowed.length === 0 ? 'nothing of ours' : allowed.join(', ');
    const fault = `${from} imports ${to}, but ${room} may import ${list}.`;
    if (target === '') {
      return `${fault} A package is imported in the rooms whose row names it; hand ${room} what it needs as an argument.`;
    }
    if (target === 'lib/cli') {
      return `${fault} Nothing imports lib/cli: what a command and the library both need belongs in the library.`;
    }
    if (this.#isAllowed(target, `${room}/any`)) {
      return `${fault} ${target} rests on ${room}: what ${from} needs of it belongs in ${room} or in a room below; or the code that needs it belongs in ${target}.`;
    }
    const below = this.rooms.filter((each) =>
      [room, target].every((one) => this.#isAllowed(one, `${each}/any`) && one !== each),
    );
    const shared = below.length === 0 ? 'a room below both' : below.join(', ');
    return `${fault} What both need belongs in a room that both may import: ${shared}.`;
  }
}

function filesBelow(folder: string, endings: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => `${folder}/${String(name)}`)
    .filter((file) => endings.test(file));
}

const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** A line of a docstring, which may import in an example. */
const DOCSTRING_LINE = /^ *\* .*$/gm;

/** Every import of lib/, `import type`, re-exports and `import()` included, but Node's own. */
export function importsOfLib(): Arrow[] {
  return filesBelow('lib', /\.ts$/).flatMap((from) => {
    const code = read(from).replaceAll(DOCSTRING_LINE, '');
    const found = code.matchAll(/(?:\bfrom|^import|\bimport\() ?'([^']+)'/gm);
    return [...found]
      .map(([, name]) => name as string)
      .filter((name) => !name.startsWith('node:'))
      .map((name) => ({
        from,
        to: name.startsWith('.') ? posix.join(posix.dirname(from), name) : name,
      }));
  });
}

/** Node's headers, and the package that wraps them, as one package each. */
const PACKAGE_OF_HEADER: Record<string, string> = {
  'napi.h': 'node-addon-api',
  'node_api.h': 'node_api.h',
  'js_native_api.h': 'node_api.h',
  'uv.h': 'uv.h',
  'v8.h': 'v8.h',
};

/** Every #include of native/ that names a file of ours or of Node. */
export function includesOfNative(): Arrow[] {
  return filesBelow('native', /\.(?:cc|h|hpp)$/).flatMap((from) => {
    const found = [...read(from).matchAll(/^#include ([<"])([^>"]+)[>"]/gm)];
    return found.flatMap(([, quote, name]) => {
      const header = name as string;
      const foreign = PACKAGE_OF_HEADER[header];
      if (foreign !== undefined) return [{ from, to: foreign }];
      return quote === '"' ? [{ from, to: posix.join(posix.dirname(from), header) }] : [];
    });
  });
}

/** The first circle among the files, as a list of them; undefined if there is none. */
export function circleIn(arrows: readonly Arrow[]): string[] | undefined {
  const next = new Map<string, string[]>();
  for (const { from, to } of arrows) next.set(from, [...(next.get(from) ?? []), to]);
  const isDone = new Set<string>();
  const visit = (file: string, path: string[]): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (isDone.has(file)) return undefined;
    for (const each of next.get(file) ?? []) {
      const circle = visit(each, [...path, file]);
      if (circle !== undefined) return circle;
    }
    isDone.add(file);
    return undefined;
  };
  for (const file of next.keys()) {
    const circle = visit(file, []);
    if (circle !== undefined) return circle;
  }
  return undefined;
}
