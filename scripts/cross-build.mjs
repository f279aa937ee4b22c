// Builds an addon for another platform than this machine, by CMake and one of the toolchains in
// toolchains/.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { include_dir as headers, symbols } from 'node-api-headers';
import { fetchToolchains, folder as toolchains } from './toolchains/fetch.mjs';

const recipes = join(import.meta.dirname, 'toolchains');
/**
 * For size, because the tarball holds the binaries of all platforms. Measured for linux-x64-glibc,
 * gzipped: clang's -O2 293 KB, -Os 272 KB, -Os -flto 279 KB, -Oz 244 KB; -Oz without the demangler
 * 207 KB; then with frame pointers, which shorten the unwind tables, 205 KB; then with tables for
 * exceptions only, not for every instruction, 200 KB. gcc 12 has no smaller code at -Oz than at -Os.
 */
const releaseFlags = {
  linux: '-Oz -fno-omit-frame-pointer -fno-asynchronous-unwind-tables -DNDEBUG',
  win32: '-Os -DNDEBUG',
};
const run = (command, args) => execFileSync(command, args, { stdio: ['ignore', 2, 2] });

/**
 * Makes the import library for Windows: with it the addon finds the functions of Node-API 8 in the
 * running program at the first call.
 */
function importLibrary(build) {
  const { node_api_symbols: node, js_native_api_symbols: engine } = symbols.v8;
  const definition = join(build, 'node.def');
  const library = join(build, 'libnode.a');
  writeFileSync(definition, `LIBRARY node.exe\nEXPORTS\n${[...node, ...engine].join('\n')}\n`);
  run('x86_64-w64-mingw32-dlltool', ['-d', definition, '-D', 'node.exe', '-y', library]);
  return library;
}

/**
 * Builds the addon and returns its path. `cmakeTarget`: the name of the addon's target in the
 * CMakeLists.txt of `source`; `sources`: further source files for it. CMakeLists.txt gets
 * CMAKE_JS_INC, CMAKE_JS_LIB and CMAKE_JS_SRC, as it does under cmake-js.
 */
export function crossBuild({ target, source, build, cmakeTarget, sources = [], settings = {} }) {
  mkdirSync(build, { recursive: true });
  if (target.platform === 'linux') fetchToolchains();
  const toolchain =
    target.platform === 'win32'
      ? {
          CMAKE_TOOLCHAIN_FILE: join(recipes, 'windows.cmake'),
          CMAKE_JS_LIB: importLibrary(build),
          CMAKE_JS_SRC: [join(recipes, 'delay_load_hook.cc'), ...sources].join(';'),
        }
      : {
          CMAKE_TOOLCHAIN_FILE: join(recipes, 'linux.cmake'),
          ALLSTOP_TOOLCHAINS: toolchains,
          ALLSTOP_ARCH: { x64: 'x86_64', arm64: 'aarch64' }[target.arch],
          ALLSTOP_LIBC: target.libc,
          CMAKE_JS_SRC: sources.join(';'),
        };
  const flags = Object.entries({
    ...toolchain,
    ...settings,
    CMAKE_BUILD_TYPE: 'Release',
    CMAKE_CXX_FLAGS_RELEASE: releaseFlags[target.platform],
    CMAKE_JS_INC: headers,
  }).map(([name, value]) => `-D${name}=${value}`);
  run('cmake', ['-S', source, '-B', build, '-G', 'Unix Makefiles', ...flags]);
  run('cmake', ['--build', build, '--target', cmakeTarget, '--parallel', '2']);
  return join(build, `${cmakeTarget}.node`);
}
