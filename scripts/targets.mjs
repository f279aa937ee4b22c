// The platforms with a prebuilt binary, by their names in lib/native/binary/binary.ts.

/**
 * `cross`: the programs with which `npm run prebuild -- --all` builds the binary on Linux. Without
 * `cross` the binary is built on a machine of that platform (.github/workflows/release.yml).
 */
const clang = { programs: ['clang++-14', 'ld.lld-14'], packages: ['clang-14', 'lld-14'] };
const mingw = {
  programs: ['x86_64-w64-mingw32-g++-posix'],
  packages: ['g++-mingw-w64-x86-64-posix'],
};

export const targets = [
  { name: 'linux-x64-glibc', platform: 'linux', arch: 'x64', libc: 'glibc', cross: clang },
  { name: 'linux-x64-musl', platform: 'linux', arch: 'x64', libc: 'musl', cross: clang },
  { name: 'linux-arm64-glibc', platform: 'linux', arch: 'arm64', libc: 'glibc', cross: clang },
  { name: 'linux-arm64-musl', platform: 'linux', arch: 'arm64', libc: 'musl', cross: clang },
  { name: 'win32-x64', platform: 'win32', arch: 'x64', cross: mingw },
  { name: 'win32-arm64', platform: 'win32', arch: 'arm64' },
  { name: 'darwin-x64', platform: 'darwin', arch: 'x64' },
  { name: 'darwin-arm64', platform: 'darwin', arch: 'arm64' },
];

/** The path of the published binary, from the root of the package. */
export const fileOf = ({ platform, arch, libc }) =>
  `prebuilds/${platform}-${arch}/allstop${libc ? `.${libc}` : ''}.node`;
