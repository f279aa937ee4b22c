/**
 * How long after a stop each blocking call of a thread with an `allstop::Interruptible` ends, and how
 * many calls of other threads a stop has interrupted. Linux only.
 */

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { quick, report } from './rounds.mjs';
import { slug } from './rows.mjs';

const program = fileURLToPath(new URL('native/build/interruptible', import.meta.url));
const rounds = quick ? 2 : 31;
const { calls, others } = JSON.parse(execFileSync(program, [String(rounds)], { encoding: 'utf8' }));
const rows = { 'interrupt/others': { ours: [others.interrupted] } };
for (const [call, { ms, ended }] of Object.entries(calls)) {
  if (ended !== rounds) throw new Error(`${call}: ${rounds - ended} of ${rounds} did not end`);
  rows[`interrupt/${slug(call)}`] = { ours: ms };
}
report(rows);
