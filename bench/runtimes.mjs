/**
 * The same on other runtimes, which come from npm (scripts/matrix/runtimes.mjs): a check in a hot
 * loop on each Node, and a stop that native code sees on each runtime.
 */

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { prepare, runtimes } from '../scripts/matrix/runtimes.mjs';
import { quick, report, wants } from './rounds.mjs';
import { slug } from './rows.mjs';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const ofThisMachine = runtimes.filter(({ target }) => target === 'linux-x64-glibc');

/**
 * How to start the runtime. All are downloaded at once, since npm removes what an earlier call has
 * installed.
 */
export function programOf(name) {
  const runtime = ofThisMachine.find((each) => each.name === name);
  if (runtime === undefined) throw new Error(`This machine has no ${name}`);
  prepare(ofThisMachine);
  return runtime;
}

function measure({ program, flags }, script, ...args) {
  const all = [...flags, path(script), ...args, ...(quick ? ['--quick'] : [])];
  return JSON.parse(execFileSync(program, all, { encoding: 'utf8', maxBuffer: 2 ** 24 }));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const rows = {};
  for (const { name } of quick ? [] : ofThisMachine) {
    const check = `runtime/should-stop-${slug(name)}`;
    const signal = `runtime/signal-${slug(name)}`;
    if (wants(check) && name.startsWith('Node')) {
      const rounds = { ours: [], peer: [] };
      for (let index = 0; index < 7; index++) {
        const { ours, peer } = measure(programOf(name), 'should-stop.mjs', '--one');
        rounds.ours.push(...ours);
        rounds.peer.push(...peer);
      }
      rows[check] = rounds;
    }
    if (wants(signal)) {
      const { coordinator, plain } = measure(programOf(name), 'signal-samples.mjs', '7');
      rows[signal] = { ours: coordinator, peer: plain };
    }
  }
  report(rows);
}
