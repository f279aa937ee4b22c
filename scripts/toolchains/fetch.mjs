// Fills build-toolchains/ with the libraries against which the prebuilt binaries for Linux are
// linked: old versions of glibc from npm, and Debian's static libc++ and musl, each for x86_64 and
// aarch64. Nothing is installed in the system, and root is not needed.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

export const folder = resolve(import.meta.dirname, '../../build-toolchains');
export const ARCHES = ['x86_64', 'aarch64'];
const DEBIAN_ARCH = { x86_64: 'amd64', aarch64: 'arm64' };
const SYSROOTS = {
  x86_64: '@napi-rs/cross-toolchain-x64-target-x86_64@1.0.0',
  aarch64: '@napi-rs/cross-toolchain-x64-target-aarch64@1.0.3',
};
const DEBIAN = ['libc++-14-dev', 'libc++abi-14-dev', 'libunwind-14-dev', 'musl', 'musl-dev'];

const run = (command, args, options = {}) =>
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'], ...options });

/**
 * Runs `make` unless it has completed before. Deletes the leftovers of an interrupted run first.
 */
function once(name, make) {
  const path = join(folder, name);
  const done = `${path}.done`;
  if (existsSync(done)) return;
  rmSync(path, { recursive: true, force: true });
  make(path);
  writeFileSync(done, '');
}

/** Fetches old versions of glibc, with the start files and libgcc of the compilers of that time. */
function fetchSysroots() {
  once('npm', (path) => {
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, 'package.json'), '{ "private": true }\n');
    const flags = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
    run('npm', ['install', ...flags, ...Object.values(SYSROOTS)], { cwd: path });
  });
  const require = createRequire(join(folder, 'npm/'));
  for (const arch of ARCHES) {
    once(`gcc-${arch}`, (path) => {
      const { toolchainPath } = require(SYSROOTS[arch].replace(/@[^@]*$/, ''));
      mkdirSync(path);
      run('tar', ['xJf', toolchainPath, '-C', path]);
    });
  }
}

/**
 * Downloads packages of this machine's Debian release and unpacks them into NAME-ARCH. Uses an apt
 * state of its own, because the apt of the system may not be set up for `arm64`.
 */
export function fetchDebian(name, packages, arches = ARCHES) {
  const missing = arches.filter((arch) => !existsSync(join(folder, `${name}-${arch}.done`)));
  if (missing.length === 0) return;
  const apt = join(folder, 'apt');
  mkdirSync(join(apt, 'lists/partial'), { recursive: true });
  const flags = [
    'APT::Architectures::=arm64',
    'APT::Sandbox::User=',
    'Debug::NoLocking=1',
    `Dir::State::Lists=${apt}/lists`,
    'Dir::Cache::pkgcache=',
    'Dir::Cache::srcpkgcache=',
  ].flatMap((option) => ['-o', option]);
  run('apt-get', ['-qq', ...flags, 'update']);
  for (const arch of missing) {
    once(`${name}-${arch}`, (path) => {
      const debs = join(path, 'debs');
      mkdirSync(debs, { recursive: true });
      const wanted = packages.map((each) => `${each}:${DEBIAN_ARCH[arch]}`);
      run('apt-get', ['-qq', ...flags, 'download', ...wanted], { cwd: debs });
      for (const deb of readdirSync(debs)) run('dpkg-deb', ['-x', join(debs, deb), path]);
      rmSync(debs, { recursive: true });
    });
  }
}

/** Compiles the functions that Debian's static libc++ needs and that musl or libgcc do not have. */
function compile(source, arch, ...flags) {
  const output = join(folder, `${source}-${arch}.o`);
  const common = `--target=${arch}-unknown-linux-musl -O2 -fPIC -fvisibility=hidden`.split(' ');
  run('clang-14', [
    ...common,
    ...flags,
    '-c',
    join(import.meta.dirname, `${source}.c`),
    '-o',
    output,
  ]);
}

function completeDebian() {
  once('completed', () => {
    for (const arch of ARCHES) {
      const debian = join(folder, `debian-${arch}`);
      // Linked under this name, the binary needs libc.musl-ARCH.so.1, which only musl systems have.
      const link = join(debian, `lib/${arch}-linux-musl/libc.musl-${arch}.so.1`);
      rmSync(link, { force: true });
      symlinkSync('libc.so', link);
      const include = `${debian}/usr/include/${arch}-linux-musl`;
      compile('fortify', arch, '-nostdlibinc', '-isystem', include);
    }
    compile('outline_atomics', 'aarch64', '-mno-outline-atomics', '-nostdlibinc', '-ffreestanding');
  });
}

export function fetchToolchains() {
  mkdirSync(folder, { recursive: true });
  fetchSysroots();
  fetchDebian('debian', DEBIAN);
  completeDebian();
}
