#!/usr/bin/env node
// What prebuildify runs in place of node-gyp for a target that is not this machine:
// CMake with a toolchain of ours. ALLSTOP_TARGET names the target.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { include_dir as headers, symbols } from 'node-api-headers';
import { targets } from './targets.mjs';
import { folder as toolchains } from './toolchains/fetch.mjs';

const root = resolve(import.meta.dirname, '..');
const recipes = join(root, 'scripts/toolchains');
const target = targets.find(({ name }) => name === process.env.ALLSTOP_TARGET);
const build = join(root, 'build-prebuilds', target.name);
mkdirSync(build, { recursive: true });

const run = (command, args, options = {}) =>
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], ...options });

/** The functions of Node-API 8, imported from the running program when first called. */
function importLibrary() {
  const { node_api_symbols: node, js_native_api_symbols: engine } = symbols.v8;
  const definition = join(build, 'node.def');
  const library = join(build, 'libnode.a');
  writeFileSync(definition, `LIBRARY node.exe\nEXPORTS\n${[...node, ...engine].join('\n')}\n`);
  run('x86_64-w64-mingw32-dlltool', ['-d', definition, '-D', 'node.exe', '-y', library]);
  return library;
}

const settings =
  target.platform === 'win32'
    ? {
        CMAKE_TOOLCHAIN_FILE: join(recipes, 'windows.cmake'),
        CMAKE_JS_LIB: importLibrary(),
        CMAKE_JS_SRC: join(recipes, 'delay_load_hook.cc'),
      }
    : {
        CMAKE_TOOLCHAIN_FILE: join(recipes, 'linux.cmake'),
        ALLSTOP_TOOLCHAINS: toolchains,
        ALLSTOP_ARCH: { x64: 'x86_64', arm64: 'aarch64' }[target.arch],
        ALLSTOP_LIBC: target.libc,
      };
const flags = Object.entries({
  ...settings,
  CMAKE_BUILD_TYPE: 'Release',
  // Eight binaries have to fit into one small tarball; mingw's are the largest.
  CMAKE_CXX_FLAGS_RELEASE: target.platform === 'win32' ? '-Os -DNDEBUG' : '-O2 -DNDEBUG',
  CMAKE_JS_INC: headers,
  ALLSTOP_ADDON: 'ON',
}).map(([name, value]) => `-D${name}=${value}`);

run('cmake', ['-S', root, '-B', build, '-G', 'Unix Makefiles', ...flags]);
run('cmake', ['--build', build, '--target', 'allstop', '--parallel', '2']);
const output = join(root, 'build/Release');
rmSync(output, { recursive: true, force: true });
mkdirSync(output, { recursive: true });
copyFileSync(join(build, 'allstop.node'), join(output, 'allstop.node'));
