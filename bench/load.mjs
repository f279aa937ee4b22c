/** The start-up cost of a program: the import, and the first object, which loads the addon. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { compilePeer, fetchPeers, peerFolder } from './peers.mjs';
import { alone, inTurn, quick, report } from './rounds.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const script = fileURLToPath(new URL('load-process.mjs', import.meta.url));

/** The published binary is used if `npm run prebuild` has built it. */
const prebuilt = join(root, `prebuilds/${process.platform}-${process.arch}/allstop.glibc.node`);
const env = { ...process.env, ...(existsSync(prebuilt) && { ALLSTOP_BINARY: prebuilt }) };

async function timesOf(args) {
  const { stdout } = await promisify(execFile)(process.execPath, [script, ...args], { env });
  return JSON.parse(stdout);
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
  fetchPeers();
  compilePeer('better-sqlite3', 'build/Release/better_sqlite3.node');
  const peer = [join(peerFolder('better-sqlite3'), 'lib/index.js'), 'Database', ':memory:'];
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
