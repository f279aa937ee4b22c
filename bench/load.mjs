/** What a program pays at its start: the import, and the first object, which loads the addon. */

import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { alone, inTurn, quick, report } from './rounds.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const script = fileURLToPath(new URL('load-process.mjs', import.meta.url));

/** The binary as it is published, if it has been made. */
const prebuilt = join(root, `prebuilds/${process.platform}-${process.arch}/allstop.glibc.node`);
const env = { ...process.env, ...(existsSync(prebuilt) && { ALLSTOP_BINARY: prebuilt }) };

async function timesOf(args) {
  const { stdout } = await promisify(execFile)(process.execPath, [script, ...args], { env });
  return JSON.parse(stdout);
}

/** better-sqlite3, which is compiled here once: its own binary would be downloaded. */
function peerFolder() {
  const folder = join(root, 'build-bench');
  const peer = join(folder, 'node_modules/better-sqlite3');
  if (existsSync(join(peer, 'build/Release/better_sqlite3.node'))) return peer;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const flags = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  execFileSync('npm', ['install', ...flags, 'better-sqlite3@12.11.1'], { cwd: folder });
  const gyp = join(root, 'node_modules/.bin/node-gyp');
  const headers = dirname(dirname(process.execPath));
  const local = existsSync(join(headers, 'include/node')) ? [`--nodedir=${headers}`] : [];
  execFileSync(gyp, ['rebuild', '--release', ...local], { cwd: peer, stdio: 'pipe' });
  return peer;
}

const ours = [join(root, 'dist/index.js'), 'Coordinator'];
const common = { unit: 'ms', peerName: 'better-sqlite3' };
const rows = [
  ['imported', '`import` of the package'],
  ['ready', '`import` and the first `new Coordinator()`, which loads the addon'],
];
if (quick) {
  const measured = { rounds: 2, samples: 3, ours: async () => (await timesOf(ours)).ready };
  report([{ what: rows[1][1], unit: 'ms', ours: await alone(measured) }]);
} else {
  const peer = [join(peerFolder(), 'lib/index.js'), 'Database', ':memory:'];
  const measure = (key) =>
    inTurn({
      rounds: 11,
      samples: 7,
      ours: async () => (await timesOf(ours))[key],
      peer: async () => (await timesOf(peer))[key],
    });
  const found = [];
  for (const [key, what] of rows) found.push({ what, ...common, ...(await measure(key)) });
  report(found);
}
