/** The size of what is published and installed, and how often a fresh clone compiles the addon. */

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fetchPeers, peerFolder } from './peers.mjs';
import { quick, report } from './rounds.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { scripts, dependencies = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Megabytes of the files of the folder. */
function sizeOf(folder) {
  let bytes = 0;
  for (const file of readdirSync(folder, { recursive: true })) {
    const stat = statSync(join(folder, file));
    if (stat.isFile()) bytes += stat.size;
  }
  return bytes / 1e6;
}

/** The tarball with the binaries of prebuilds/. */
function pack() {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const [{ size, unpackedSize }] = JSON.parse(
    execFileSync('npm', args, { cwd: root, stdio: 'pipe' }),
  );
  return { tarball: size / 1e6, installed: unpackedSize / 1e6 };
}

/** The scripts that run in `npm ci && npm start`. */
const FRESH = ['preinstall', 'install', 'postinstall', 'prepare', 'prestart', 'start'];
const compiles = FRESH.filter((name) => /\baddon\b|node-gyp|cmake/.test(scripts[name] ?? ''));
const rows = {
  'package/compiles': { ours: [compiles.length] },
  'package/dependencies': { ours: [Object.keys(dependencies).length] },
};
const prebuilds = join(root, 'prebuilds');
const targets = existsSync(prebuilds) ? readdirSync(prebuilds).length : 0;
if (targets >= 3) {
  const { tarball, installed } = pack();
  if (!quick) fetchPeers();
  rows['package/tarball'] = { ours: [tarball] };
  rows['package/installed'] = {
    ours: [installed],
    peer: quick ? undefined : [sizeOf(peerFolder('piscina'))],
  };
} else if (!quick) {
  process.stderr.write('No binaries of other platforms: `npm run prebuild -- --all` first\n');
}
report(rows);
