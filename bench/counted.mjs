/**
 * Counts of a trivial call beside those of other pools (history/story.mjs), which do not depend on how
 * busy the machine is: instructions by callgrind, system calls by strace.
 */

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { fetchPeers } from './peers.mjs';
import { quick, report, wants } from './rounds.mjs';

const script = fileURLToPath(new URL('history/story.mjs', import.meta.url));
const dist = fileURLToPath(new URL('../dist', import.meta.url));
const SUBJECTS = { ours: dist, ...(quick ? {} : { Piscina: 'piscina', workerpool: 'workerpool' }) };

function countOf(command, flags, subject, calls, pattern) {
  const args = [...flags, process.execPath];
  if (command === 'valgrind') args.push('--single-threaded'); // V8 compiles at the same point then
  args.push(script, subject, 'calls', String(calls));
  const { stderr, status } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 26 });
  const found = pattern.exec(stderr)?.[1];
  if (status !== 0 || found === undefined) throw new Error(`${command} has failed: ${stderr}`);
  return Number(found);
}

const instructions = (subject, calls) => {
  const flags = ['--tool=callgrind', '--callgrind-out-file=/dev/null'];
  return countOf('valgrind', flags, subject, calls, /Collected : (\d+)/) / 1_000;
};
const systemCalls = (subject, calls) =>
  countOf('strace', ['-f', '-qq', '-c', '-U', 'calls'], subject, calls, /(\d+) +total$/m);

/** `count` of one call, of those from the `from`th to the `to`th. */
const each = (count, subject, from, to) =>
  (count(subject, to) - count(subject, from)) / (to - from);

function row(measure) {
  const { ours, ...peers } = Object.fromEntries(
    Object.entries(SUBJECTS).map(([name, subject]) => [name, [measure(subject)]]),
  );
  return { ours, ...(!quick && { peers }) };
}

if (!quick) fetchPeers();
const [few, some, many] = quick ? [2, 3, 4] : [2, 400, 1_600];
const rows = {};
if (wants('counted/first')) {
  rows['counted/first'] = row((subject) => each(instructions, subject, few, some));
}
if (wants('counted/next')) {
  rows['counted/next'] = row((subject) => each(instructions, subject, some, many));
}
if (wants('counted/system-calls')) {
  rows['counted/system-calls'] = row((subject) => {
    const runs = Array.from({ length: quick ? 1 : 3 }, () =>
      each(systemCalls, subject, many >> 1, many),
    );
    return Math.min(...runs);
  });
}
report(rows);
