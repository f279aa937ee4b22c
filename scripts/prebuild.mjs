// Builds the native binaries into prebuilds/, as they are published:
//   prebuild.mjs              the binary for this machine
//   prebuild.mjs --all        all binaries, on Linux x64 (npm run prebuild:all); fails if one cannot be built
//   prebuild.mjs --available  those whose tools are installed, and this machine's binary
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { fileOf, targets } from './targets.mjs';

const require = createRequire(import.meta.url);
const prebuildify = promisify(require('prebuildify'));
const root = resolve(import.meta.dirname, '..');
const say = (line) => process.stderr.write(`${line}\n`);

const has = (program) => spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0;
const lacks = ({ cross }) => cross.programs.filter((program) => !has(program));
const installs = ({ cross }) => `apt-get install ${cross.packages.join(' ')}`;

async function build(target, options) {
  say(`prebuild: ${fileOf(target)}`);
  const { platform, arch, libc } = target;
  await prebuildify({ cwd: root, platform, arch, napi: true, tagLibc: libc, ...options });
}

async function buildCross(target) {
  process.env.ALLSTOP_TARGET = target.name;
  const nodeGyp = join(import.meta.dirname, 'cross-gyp.mjs');
  await build(target, { nodeGyp, targets: [process.version.slice(1)] });
}

/**
 * Builds with node-gyp and the compiler of this system. Uses the headers of the local Node, if they
 * are installed, so that node-gyp downloads none. The headers of any version fit, as the addon only
 * uses Node-API.
 */
async function buildHost(target) {
  const prefix = resolve(dirname(process.execPath), '..');
  if (existsSync(join(prefix, 'include/node/node_api.h')))
    process.env.npm_config_nodedir ??= prefix;
  const nodeGyp = require.resolve('node-gyp/bin/node-gyp.js');
  const quiet = Boolean(process.env.CI);
  await build(target, { nodeGyp, strip: true, quiet, targets: [process.version.slice(1)] });
  if (target.libc === 'glibc') {
    say(
      `prebuild: ${fileOf(target)} was built here: it needs the glibc of this machine, not 2.17,`,
    );
    say('prebuild: as allstop doctor tells its users. Do not publish it: npm run prebuild:all');
  }
}

const { platform, arch } = process;
const isMusl = process.report.getReport().header.glibcVersionRuntime === undefined;
const host = targets.find(
  (target) =>
    target.platform === platform &&
    target.arch === arch &&
    (target.libc === undefined || target.libc === (isMusl ? 'musl' : 'glibc')),
) ?? { name: `${platform}-${arch}`, platform, arch };

const mode = process.argv[2];
if (![undefined, '--all', '--available'].includes(mode)) {
  say('Usage: prebuild.mjs [--all | --available]');
  process.exit(2);
}
const isLinux = platform === 'linux' && arch === 'x64';
const wanted = mode === undefined ? [host] : targets.filter(({ cross }) => isLinux && cross);
if (!wanted.includes(host)) wanted.push(host);

/** Cross-builds the binary. Resolves to undefined, or to the reason why the build failed. */
async function tryCross(target) {
  const missing = lacks(target);
  if (missing.length > 0) return `missing: ${missing.join(', ')}. What to do: ${installs(target)}`;
  try {
    await buildCross(target);
    return undefined;
  } catch (error) {
    return error.message;
  }
}

let failed = false;
for (const target of wanted) {
  const why = isLinux && target.cross ? await tryCross(target) : undefined;
  const isMade = isLinux && target.cross && why === undefined;
  if (isMade) continue;
  if (why !== undefined) say(`prebuild: ${target.name} cannot be built: ${why}`);
  if (target === host && mode !== '--all') {
    if (why !== undefined)
      say("prebuild: building with this machine's compiler, against its C library");
    await buildHost(target);
  } else failed ||= mode === '--all';
}
process.exit(failed ? 1 : 0);
