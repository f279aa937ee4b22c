// Checks that the binaries in prebuilds/ need only the libraries and symbols that the README
// promises, and export only the symbols in EXPORTS. Needs binutils, and build-toolchains/ for musl.
//   node scripts/test-prebuilds.mjs                     checks the binaries that are there
//   node scripts/test-prebuilds.mjs --complete       fails if the binary of a platform is missing
//   node scripts/test-prebuilds.mjs --present        only whether all are there: needs none of these tools
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { symbols } from 'node-api-headers';
import { fileOf, targets } from './targets.mjs';
import { folder as toolchains } from './toolchains/fetch.mjs';

const root = resolve(import.meta.dirname, '..');
const NEWEST_GLIBC = [2, 17];
const EXPORTS = [
  'napi_register_module_v1',
  'node_api_module_get_api_version_v1',
  'sqlite3_extension_init',
];
const { node_api_symbols: node, js_native_api_symbols: engine } = symbols.v8;
const nodeApi = new Set([...node, ...engine]);
const isOurs = (library) =>
  /^(lib(c|m|pthread|dl)\.so\.6|lib(pthread|dl)\.so\.[02]|ld-linux-[\w-]+\.so\.[12])$/.test(
    library,
  );

const read = (command, ...args) =>
  execFileSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28 });

/** The dynamic symbols of an ELF file. */
function symbolsOf(path) {
  return read('readelf', '--dyn-syms', '--wide', path)
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => /^\d+:$/.test(fields[0]) && fields[7] !== undefined)
    .map(([, , , , bind, , section, name]) => ({
      name: name.replace(/@.*/, ''),
      version: /@+(\S+)/.exec(name)?.[1],
      defined: section !== 'UND',
      weak: bind === 'WEAK',
    }));
}

function* faultsOfElf(target, path) {
  const machine = /Machine:\s+(.*)/.exec(read('readelf', '--file-header', path))[1];
  if (!machine.includes({ x64: 'X86-64', arm64: 'AArch64' }[target.arch]))
    yield `is for ${machine}`;
  const all = symbolsOf(path);
  const exported = all.filter(({ defined }) => defined).map(({ name }) => name);
  for (const name of exported) if (!EXPORTS.includes(name)) yield `exports ${name}`;
  for (const name of EXPORTS) if (!exported.includes(name)) yield `does not export ${name}`;

  const needed = all.filter(({ defined, weak }) => !defined && !weak);
  const isNodes = ({ name }) => /^(napi|node_api)_/.test(name);
  for (const { name } of needed.filter(isNodes)) {
    if (!nodeApi.has(name)) yield `needs ${name}, which Node-API 8 has not`;
  }
  const libraries = [...read('readelf', '--dynamic', path).matchAll(/NEEDED.*\[(.*)\]/g)];
  const arch = { x64: 'x86_64', arm64: 'aarch64' }[target.arch];
  if (target.libc === 'musl') {
    const names = libraries.map(([, name]) => name).join();
    if (names !== `libc.musl-${arch}.so.1`) yield `needs the libraries ${names}`;
    const musl = join(toolchains, `debian-${arch}/lib/${arch}-linux-musl/libc.so`);
    const there = new Set(symbolsOf(musl).map(({ name }) => name));
    for (const each of needed.filter((symbol) => !isNodes(symbol))) {
      if (!there.has(each.name)) yield `needs ${each.name}, which musl does not have`;
    }
    return;
  }
  for (const [, name] of libraries) if (!isOurs(name)) yield `needs the library ${name}`;
  for (const { name, version } of needed.filter((symbol) => !isNodes(symbol))) {
    const [, major, minor] = /^GLIBC_(\d+)\.(\d+)/.exec(version) ?? [];
    if (major === undefined) yield `needs ${name}, which glibc does not have`;
    else if (major > NEWEST_GLIBC[0] || minor > NEWEST_GLIBC[1]) yield `needs ${name}@${version}`;
  }
}

/**
 * The faults of a DLL. Imports from Node are not checked: the import library has only Node-API 8.
 */
function* faultsOfPe(_target, path) {
  const text = read('x86_64-w64-mingw32-objdump', '-p', path);
  for (const [, library] of text.matchAll(/DLL Name: (\S+)/g)) {
    if (!/^(KERNEL32|ADVAPI32|msvcrt)\.dll$/i.test(library)) yield `needs the library ${library}`;
  }
  const table = text.split('[Ordinal/Name Pointer] Table')[1]?.split('\n\n')[0] ?? '';
  const exported = [...table.matchAll(/\[\s*\d+\](?: \+base\[\s*\d+\])?\s+(?:\w{4}\s+)?(\w+)/g)];
  const names = exported.map(([, name]) => name).toSorted();
  if (names.join() !== EXPORTS.join()) yield `exports ${names}`;
}

const isPresence = process.argv.includes('--present');
const isComplete = isPresence || process.argv.includes('--complete');
let passed = 0;
let failed = 0;
for (const target of targets) {
  const path = join(root, fileOf(target));
  if (!existsSync(path)) {
    console.log(`${target.name}: there is no binary`);
    if (isComplete) failed += 1;
    continue;
  }
  if (isPresence) {
    passed += 1;
    continue;
  }
  const faultsOf = { linux: faultsOfElf, win32: faultsOfPe }[target.platform];
  if (faultsOf === undefined) {
    console.log(`${target.name}: not checked, only ELF and PE files are`);
    continue;
  }
  const faults = [...faultsOf(target, path)];
  console.log(`${target.name}: ${faults.length === 0 ? 'ok' : faults.join('; ')}`);
  if (faults.length === 0) passed += 1;
  else failed += 1;
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
