/**
 * The start-up cost of a program: the import of each entry point, the first object, which loads the
 * addon, and the memory of both.
 */

import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { compilePeer, fetchPeers, peerFolder } from './peers.mjs';
import { besidePeers, quick, report } from './rounds.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const script = fileURLToPath(new URL('load-process.mjs', import.meta.url));

/** The published binary is used if `npm run prebuild` has built it. */
const prebuilt = join(root, `prebuilds/${process.platform}-${process.arch}/allstop.glibc.node`);
const env = { ...process.env, ...(existsSync(prebuilt) && { ALLSTOP_BINARY: prebuilt }) };

/** The arguments of load-process.mjs: a module, its class, and a value for the constructor. */
const subjects = {
  core: [join(root, 'dist/index.js'), 'Coordinator'],
  pool: [join(root, 'dist/pool/index.js')],
  cluster: [join(root, 'dist/cluster/index.js')],
  nats: [join(root, 'dist/nats/index.js')],
};
if (!quick) {
  fetchPeers();
  compilePeer('better-sqlite3', 'build/Release/better_sqlite3.node');
  const sqlite = [join(peerFolder('better-sqlite3'), 'lib/index.js'), 'Database', ':memory:'];
  // A binary that another version of Node has compiled cannot be loaded: no peer here.
  if (spawnSync(process.execPath, [script, ...sqlite]).status === 0) subjects.sqlite = sqlite;
  subjects.piscina = [join(peerFolder('piscina'), 'dist/main.js')];
}

const found = {}; // by name: { imported, ready, rssMb }, each with the values of the rounds
async function load(name) {
  const { stdout } = await promisify(execFile)(process.execPath, [script, ...subjects[name]], {
    env,
  });
  for (const [key, value] of Object.entries(JSON.parse(stdout))) {
    found[name] ??= {};
    found[name][key] ??= [];
    found[name][key].push(value);
  }
  return 0;
}
const { core: first, ...others } = Object.fromEntries(
  Object.keys(subjects).map((name) => [name, () => load(name)]),
);
await besidePeers({ rounds: 9, samples: 3, warmUp: 0, ours: first, peers: others });

const row = (name, key) => ({
  ours: found[name][key],
  ...(!quick && {
    peers: {
      Piscina: found.piscina[key],
      ...(found.sqlite !== undefined && { 'better-sqlite3': found.sqlite[key] }),
    },
  }),
});
report({
  'start/import': row('core', 'imported'),
  'start/ready': { ours: found.core.ready, peer: found.sqlite?.ready },
  'start/import-pool': row('pool', 'imported'),
  'start/import-cluster': row('cluster', 'imported'),
  'start/import-nats': row('nats', 'imported'),
  'start/memory': row('core', 'rssMb'),
  'start/memory-cluster': row('cluster', 'rssMb'),
  'start/memory-nats': row('nats', 'rssMb'),
});
