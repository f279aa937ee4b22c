// The example `ingest` as users run it: a file into SQLite, killed and stopped on the way.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fetchPeers, withPeers } from '../support/peers.ts';
import { Program } from '../support/program.ts';

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'ingest-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** A file of `count` lines, the last without its end. */
function source(name: string, count: number): string {
  const lines = Array.from({ length: count }, (_, i) => `{"name":"row ${i}","value":${i}}\n`);
  const file = join(directory, name);
  writeFileSync(file, lines.join('').trimEnd());
  return file;
}

type Counts = { rows: number; names: number; sum: number };

async function open(folder: string, database: string) {
  const url = pathToFileURL(join(import.meta.dirname, '../..', folder, 'database.mjs')).href;
  return (await import(url)).openDatabase(database);
}

async function countsIn(folder: string, database: string): Promise<Counts> {
  const db = await open(folder, database);
  const counts = 'count(*) AS rows, count(DISTINCT name) AS names, total(value) AS sum';
  const row = db.prepare(`SELECT ${counts} FROM rows`).get();
  db.close();
  return { ...row };
}

/** Ends the first runs with the signals, in turn, as soon as each has written something. */
async function ingest(folder: string, name: string, count: number, signals: NodeJS.Signals[]) {
  const file = source(`${name}.jsonl`, count);
  const database = join(directory, `${name}.db`);
  const ends: (number | NodeJS.Signals | null)[] = [];
  for (const signal of [...signals, undefined]) {
    const program = new Program(`${folder}/main.mjs`, [file, database]);
    if (signal !== undefined) {
      await program.writes(/rows written\n/);
      program.kill(signal);
    }
    const { code, signal: killedBy, stderr } = await program.ended;
    expect(stderr.replaceAll(/.*(ExperimentalWarning|--trace-warnings).*\n/g, '')).toBe('');
    ends.push(killedBy ?? code);
  }
  expect(await countsIn(folder, database)).toEqual({
    rows: count,
    names: count,
    sum: (count * (count - 1)) / 2,
  });
  return ends;
}

const hasSqlite = await import('node:sqlite' as string).then(
  () => true,
  () => false,
);

describe.skipIf(!hasSqlite)('a file on its way into SQLite, by node:sqlite', () => {
  it('is there once, though the program was killed and stopped', async () => {
    const ends = await ingest('examples/ingest', 'short', 50_000, ['SIGKILL', 'SIGTERM']);
    expect(ends).toEqual(['SIGKILL', 143, 0]);
  });

  it('is an error while its last line is unfinished, and goes on when that has its end', async () => {
    const file = source('growing.jsonl', 10);
    const database = join(directory, 'growing.db');
    const args = [file, database];
    const run = () => new Program('examples/ingest/main.mjs', args).ended;
    expect(await run()).toMatchObject({ code: 0 });
    writeFileSync(file, '\n{"name":"row 10","val', { flag: 'a' });
    expect(await run()).toMatchObject({ code: 1, stderr: expect.stringContaining('SyntaxError') });
    writeFileSync(file, 'ue":10}', { flag: 'a' });
    expect(await run()).toMatchObject({ code: 0 });
    expect(await countsIn('examples/ingest', database)).toEqual({ rows: 11, names: 11, sum: 55 });
  });
});

describe('a file on its way into SQLite, by better-sqlite3', { tags: 'long' }, () => {
  let folder: string;
  beforeAll(async () => {
    const { compilePeer } = await fetchPeers();
    compilePeer('better-sqlite3', 'build/Release/better_sqlite3.node');
    folder = withPeers('ingest');
  }, 1_800_000); // compiles SQLite

  it('is there once, however often the program was killed and stopped', async () => {
    const signals: NodeJS.Signals[] = ['SIGKILL', 'SIGTERM', 'SIGKILL', 'SIGINT', 'SIGKILL'];
    const ends = await ingest(folder, 'killed', 200_000, signals);
    expect(ends).toEqual(['SIGKILL', 143, 'SIGKILL', 130, 'SIGKILL', 0]);
  });

  it('has at each moment the rows that its position says, which is what a kill leaves', async () => {
    const count = 200_000;
    const length = `{"name":"row 000000","value":000000}\n`.length;
    const file = join(directory, 'even.jsonl');
    const lines = Array.from({ length: count }, (_, i) => {
      const number = String(100_000 + i);
      return `{"name":"row ${number}","value":${number}}\n`;
    });
    writeFileSync(file, lines.join(''));
    const database = join(directory, 'even.db');
    const program = new Program(`${folder}/main.mjs`, [file, database]);
    await program.writes(/rows written\n/);
    const run = { isOver: false };
    void program.ended.then(() => (run.isOver = true));
    const db = await open(folder, database);
    const look = db.prepare('SELECT bytes, (SELECT max(rowid) FROM rows) AS rows FROM position');
    const seen = new Set<number>();
    while (!run.isOver) {
      const { bytes, rows } = look.get();
      expect(bytes).toBe(rows * length);
      seen.add(rows);
      await new Promise((resolve) => setImmediate(resolve));
    }
    db.close();
    expect(seen.size).toBeGreaterThan(5);
  });

  it('ends with the error of a line that is no JSON, and has what came before it', async () => {
    const file = source('broken.jsonl', 10);
    writeFileSync(file, '\nno JSON\n', { flag: 'a' });
    const database = join(directory, 'broken.db');
    const end = await new Program(`${folder}/main.mjs`, [file, database]).ended;
    expect(end).toMatchObject({ code: 1, stderr: expect.stringContaining('SyntaxError') });
    expect((await countsIn(folder, database)).rows).toBeLessThanOrEqual(10);
  });

  it('says what is wrong', async () => {
    const missing = join(directory, 'missing.jsonl');
    const database = join(directory, 'missing.db');
    const end = await new Program(`${folder}/main.mjs`, [missing, database]).ended;
    expect(end).toMatchObject({ code: 1, stderr: expect.stringContaining('ENOENT') });
  });
});
