// Builds an addon for a platform that is not this machine's: CMake, with one of the
// toolchains in toolchains/.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { include_dir as headers, symbols } from 'node-api-headers';
import { fetchToolchains, folder as toolchains } from './toolchains/fetch.mjs';

const recipes = join(import.meta.dirname, 'toolchains');
const run = (command, args) => execFileSync(command, args, { stdio: ['ignore', 2, 2] });

/** The functions of Node-API 8, imported from the running program when first called. */
function importLibrary(build) {
  const { node_api_symbols: node, js_native_api_symbols: engine } = symbols.v8;
  const definition = join(build, 'node.def');
  const library = join(build, 'libnode.a');
  writeFileSync(definition, `LIBRARY node.exe\nEXPORTS\n${[...node, ...engine].join('\n')}\n`);
  run('x86_64-w64-mingw32-dlltool', ['-d', definition, '-D', 'node.exe', '-y', library]);
  return library;
}

/**
 * The path of the addon. `cmakeTarget`: what CMakeLists.txt in `source` calls it. As with
 * cmake-js, that file gets CMAKE_JS_INC, CMAKE_JS_LIB and CMAKE_JS_SRC.
 */
export function crossBuild({ target, source, build, cmakeTarget, settings = {} }) {
  mkdirSync(build, { recursive: true });
  if (target.platform === 'linux') fetchToolchains();
  const toolchain =
    target.platform === 'win32'
      ? {
          CMAKE_TOOLCHAIN_FILE: join(recipes, 'windows.cmake'),
          CMAKE_JS_LIB: importLibrary(build),
          CMAKE_JS_SRC: join(recipes, 'delay_load_hook.cc'),
        }
      : {
          CMAKE_TOOLCHAIN_FILE: join(recipes, 'linux.cmake'),
          ALLSTOP_TOOLCHAINS: toolchains,
          ALLSTOP_ARCH: { x64: 'x86_64', arm64: 'aarch64' }[target.arch],
          ALLSTOP_LIBC: target.libc,
        };
  const flags = Object.entries({
    ...toolchain,
    ...settings,
    CMAKE_BUILD_TYPE: 'Release',
    // Eight binaries have to fit into one small tarball; mingw's are the largest.
    CMAKE_CXX_FLAGS_RELEASE: target.platform === 'win32' ? '-Os -DNDEBUG' : '-O2 -DNDEBUG',
    CMAKE_JS_INC: headers,
  }).map(([name, value]) => `-D${name}=${value}`);
  run('cmake', ['-S', source, '-B', build, '-G', 'Unix Makefiles', ...flags]);
  run('cmake', ['--build', build, '--target', cmakeTarget, '--parallel', '2']);
  return join(build, `${cmakeTarget}.node`);
}
