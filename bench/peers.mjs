/** The packages that allstop is compared with. They are downloaded when they are first needed. */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = join(root, 'build-bench');
const PEERS = {
  'better-sqlite3': '12.11.1',
  piscina: '5.3.2',
  tinypool: '2.2.0',
  workerpool: '10.0.3',
  poolifier: '5.3.2',
  bullmq: '6.7.0',
  ioredis: '6.0.0',
  'close-with-grace': '2.5.0',
  pyodide: '314.0.7',
  express: '5.3.0',
  'zone.js': '0.16.3',
};

export const peerFolder = (name) => join(folder, 'node_modules', name);

const isComplete = () => Object.keys(PEERS).every((name) => existsSync(peerFolder(name)));

/** Two processes may call it at once: each installs in a folder of its own, and the first one's counts. */
export function fetchPeers() {
  if (isComplete()) return;
  const fresh = mkdtempSync(`${folder}-`);
  writeFileSync(join(fresh, 'package.json'), '{ "private": true }\n');
  const flags = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  const packages = Object.entries(PEERS).map(([name, version]) => `${name}@${version}`);
  execFileSync('npm', ['install', ...flags, ...packages], { cwd: fresh });
  if (isComplete()) {
    rmSync(fresh, { recursive: true });
  } else {
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
  }
}

/** The exports of the package, whether it is an ES module or CommonJS. */
export async function importPeer(name) {
  const require = createRequire(join(folder, 'package.json'));
  const module = await import(pathToFileURL(require.resolve(name)));
  return module.default ?? module;
}

/** Compiles the addon of the package once, because its install script would download a binary. */
export function compilePeer(name, binary) {
  const peer = peerFolder(name);
  if (existsSync(join(peer, binary))) return;
  const gyp = join(root, 'node_modules/.bin/node-gyp');
  const headers = dirname(dirname(process.execPath));
  const local = existsSync(join(headers, 'include/node')) ? [`--nodedir=${headers}`] : [];
  execFileSync(gyp, ['rebuild', '--release', ...local], { cwd: peer, stdio: 'pipe' });
}
