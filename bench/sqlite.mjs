/**
 * What `obey` of allstop/sqlite costs a query of node:sqlite, and how soon a stop ends one. Node
 * older than 22.13 has no node:sqlite: the queries then run in Node 24 of npm
 * (sqlite-process.mjs).
 */

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { quick, report } from './rounds.mjs';
import { programOf } from './runtimes.mjs';

const hasSqlite = process.getBuiltinModule?.('node:sqlite') !== undefined;
if (quick && !hasSqlite) {
  report({}); // nothing is downloaded only to see whether it runs
} else {
  const here = { program: process.execPath, flags: [] };
  const { program, flags } = hasSqlite ? here : programOf('Node 24');
  const script = fileURLToPath(new URL('sqlite-process.mjs', import.meta.url));
  const args = [...flags, '--no-warnings', script, ...(quick ? ['--quick'] : [])];
  process.stdout.write(execFileSync(program, args, { encoding: 'utf8' }));
}
