// The runtimes of the matrix, and how each is started on this machine (Linux, x64). The runtimes
// come from npm into build-runtimes/; the emulators for other platforms are packages of Debian.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fetchDebian, fetchToolchains, folder as toolchains } from '../toolchains/fetch.mjs';

const folder = resolve(import.meta.dirname, '../../build-runtimes');
const inPackage = (...path) => join(folder, 'node_modules', ...path);
const run = (command, args, options = {}) =>
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'], ...options });

/** The packages of Debian with the shared libraries that Node and Bun need under emulation. */
const RUN_TIME = ['libc6', 'libstdc++6', 'libgcc-s1', 'libatomic1'];

/** The folder in which an emulated program finds its C library. */
const glibcOfArm = join(toolchains, 'runtime-aarch64');
const muslOf = (arch) => join(folder, `musl-${arch}`);

/** Makes a folder with musl's loader and the libraries that Bun's builds for musl need. */
function prepareMusl(arch) {
  fetchToolchains();
  fetchDebian('runtime', RUN_TIME, [arch]);
  const root = muslOf(arch);
  const lib = join(root, 'lib');
  rmSync(root, { recursive: true, force: true });
  mkdirSync(lib, { recursive: true });
  const debian = join(toolchains, `debian-${arch}`);
  const libc = `lib/${arch}-linux-musl/libc.so`;
  // Where qemu looks for the loader.
  copyFileSync(join(debian, libc), join(lib, `ld-musl-${arch}.so.1`));
  const glibc = join(toolchains, `runtime-${arch}`);
  const gnu = `${arch}-linux-gnu`;
  copyFileSync(join(glibc, 'usr/lib', gnu, 'libstdc++.so.6'), join(lib, 'libstdc++.so.6'));
  copyFileSync(join(glibc, 'lib', gnu, 'libgcc_s.so.1'), join(lib, 'libgcc_s.so.1'));
  const include = join(debian, `usr/include/${arch}-linux-musl`);
  const flags = `--target=${arch}-unknown-linux-musl -O2 -fPIC -shared -nostdlib -fuse-ld=lld-14`;
  const source = join(import.meta.dirname, 'musl_libstdcxx.c');
  const output = join(lib, 'libmissing.so');
  run('clang-14', [...flags.split(' '), '-nostdlibinc', '-isystem', include, '-o', output, source]);
  const loader = { x86_64: 'ld-linux-x86-64.so.2', aarch64: 'ld-linux-aarch64.so.1' }[arch];
  symlinkSync('libmissing.so', join(lib, loader));
}

const NODE_FLAGS = ['--expose-gc'];
const QUICK = new Set(['n26', 'arm20', 'win20']);
const NODES = { 20: '20.20.2', 22: '22.23.3', 24: '24.21.0', 26: '26.10.0' };

/**
 * A runtime is started as `[...prefix, program, ...flags, script, ...arguments]` with the
 * environment `env`; `prefix` starts the emulator, if there is one. The runtime needs `programs`,
 * which are in the Debian packages `packages`. A failure of a `required` runtime fails the matrix.
 * `quick` runtimes are part of --quick.
 */
function node(major, target, { alias, platform, prefix = [], ...more }) {
  const program = platform.startsWith('win') ? 'node.exe' : 'node';
  return {
    name: `Node ${major}`,
    version: NODES[major],
    target,
    npm: { [alias]: `npm:node-${platform}@${NODES[major]}` },
    program: inPackage(alias, 'bin', program),
    prefix,
    flags: NODE_FLAGS,
    required: true,
    quick: QUICK.has(alias),
    ...more,
  };
}

const qemu = {
  through: 'qemu-user',
  programs: ['qemu-aarch64'],
  packages: ['qemu-user'],
};
const wine = { through: 'wine', programs: ['wine'], packages: ['wine', 'wine64'] };
const winePrefix = join(folder, 'wine');

const native = Object.keys(NODES).map((major) =>
  node(major, 'linux-x64-glibc', { alias: `n${major}`, platform: 'linux-x64' }),
);
const arm = Object.keys(NODES).map((major) =>
  node(major, 'linux-arm64-glibc', {
    alias: `arm${major}`,
    platform: 'linux-arm64',
    prefix: ['qemu-aarch64', '-L', glibcOfArm],
    prepare: () => fetchDebian('runtime', RUN_TIME, ['aarch64']),
    ...qemu,
  }),
);
// Node 24 and later do not start under Debian's wine 8: "SegmentedTable::InitializeTable".
const windows = [20, 22].map((major) =>
  node(major, 'win32-x64', {
    alias: `win${major}`,
    platform: 'win-x64',
    prefix: ['wine'],
    env: { WINEPREFIX: winePrefix, WINEDEBUG: '-all' },
    // Under wine Node cannot write to pipes: the output goes through files.
    usesFiles: true,
    prepare() {
      if (existsSync(join(winePrefix, 'system.reg'))) return;
      const env = { ...process.env, WINEPREFIX: winePrefix, WINEDEBUG: '-all' };
      run('wineboot', ['-i'], { env, stdio: 'ignore' });
      run('wine', ['winecfg', '-v', 'win10'], { env, stdio: 'ignore' });
    },
    ...wine,
  }),
);
const BUN = { name: 'Bun', version: '1.4.5', flags: NODE_FLAGS };

const bunMusl = (arch, npmArch, target) => {
  const lib = join(muslOf(arch), 'lib');
  const settings = [`LD_PRELOAD=${lib}/libmissing.so`, `LD_LIBRARY_PATH=${lib}`];
  const npm = `@oven/bun-linux-${npmArch}-musl`;
  return {
    ...BUN,
    target,
    npm: { [npm]: BUN.version },
    program: inPackage(npm, 'bin/bun'),
    prepare: () => prepareMusl(arch),
    ...(arch === 'aarch64'
      ? {
          ...qemu,
          prefix: ['qemu-aarch64', '-L', muslOf(arch), ...settings.flatMap((each) => ['-E', each])],
        }
      : {
          prefix: ['env', ...settings],
          programs: ['/lib/ld-musl-x86_64.so.1'],
          packages: ['musl'],
          quick: true,
        }),
  };
};

export const runtimes = [
  ...native,
  {
    ...BUN,
    target: 'linux-x64-glibc',
    npm: { '@oven/bun-linux-x64': BUN.version },
    program: inPackage('@oven/bun-linux-x64/bin/bun'),
    prefix: [],
  },
  {
    name: 'Deno',
    version: '2.9.6',
    target: 'linux-x64-glibc',
    npm: { '@deno/linux-x64-glibc': '2.9.6' },
    program: inPackage('@deno/linux-x64-glibc/deno'),
    prefix: [],
    flags: ['run', '--allow-all', '--v8-flags=--expose-gc'],
  },
  ...arm,
  bunMusl('x86_64', 'x64', 'linux-x64-musl'),
  bunMusl('aarch64', 'aarch64', 'linux-arm64-musl'),
  ...windows,
];

/** Runtimes and platforms that cannot be run on this machine, and why. */
export const notRun = {
  'darwin-x64, darwin-arm64': 'macOS runs on machines of Apple’s only',
  'win32-arm64': 'no emulator of it here',
  'Node on musl': 'no build of Node for musl can be had from npm; Bun’s stands in',
  'Node 24 and 26 on Windows': 'they do not start under wine 8',
  Electron: 'it cannot be had from npm without a download',
};

/** The programs that a runtime needs and that are not installed here. */
export const lacking = ({ programs = [] }) =>
  programs.filter((program) => spawnSync('which', [program], { stdio: 'ignore' }).status !== 0);

/** Downloads the runtimes and makes them ready to start. */
export function prepare(wanted) {
  const missing = wanted.filter(({ program }) => !existsSync(program));
  if (missing.length > 0) {
    mkdirSync(folder, { recursive: true });
    const packages = wanted.flatMap(({ npm }) =>
      Object.entries(npm).map(([alias, spec]) => `${alias}@${spec}`),
    );
    const flags = ['--no-save', '--force', '--ignore-scripts', '--no-audit', '--no-fund'];
    const manifest = ['--prefix', folder, '--silent'];
    run('npm', ['install', ...flags, ...manifest, ...packages], { cwd: folder });
  }
  for (const { program } of wanted) chmodSync(program, 0o755);
  for (const each of new Set(wanted.map(({ prepare: ready }) => ready).filter(Boolean))) each();
}
