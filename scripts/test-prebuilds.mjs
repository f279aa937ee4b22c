// Looks into the binaries in prebuilds/: each is for its platform and its oldest system, needs only
// libraries and symbols of the system, exports only the symbols in EXPORTS, is stripped and small, and
// for macOS signed. Needs binutils for those for Linux, and build-toolchains/ for musl.
//   node scripts/test-prebuilds.mjs              checks the binaries that are there
//   node scripts/test-prebuilds.mjs --complete   fails if the binary of a platform is missing
//   node scripts/test-prebuilds.mjs --present    only whether all are there: needs none of these tools
//   node scripts/test-prebuilds.mjs --exports    only that those for macOS and Windows export what they must
//   node scripts/test-prebuilds.mjs --planted    plants faults into copies, which must be found
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { symbols } from 'node-api-headers';
import { EXPORTS, fileOf, targets } from './targets.mjs';
import { folder as toolchains } from './toolchains/fetch.mjs';
import { readMachO } from './toolchains/mach-o.mjs';
import { readPe } from './toolchains/pe.mjs';

const root = resolve(import.meta.dirname, '..');
const NEWEST_GLIBC = [2, 17];
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

function* faultsOfExports(exported) {
  for (const name of exported) if (!EXPORTS.includes(name)) yield `exports ${name}`;
  for (const name of EXPORTS) if (!exported.includes(name)) yield `does not export ${name}`;
}

function* faultsOfElf(target, _bytes, path) {
  const machine = /Machine:\s+(.*)/.exec(read('readelf', '--file-header', path))[1];
  if (!machine.includes({ x64: 'X86-64', arm64: 'AArch64' }[target.arch]))
    yield `is for ${machine}`;
  const all = symbolsOf(path);
  const exported = all.filter(({ defined }) => defined).map(({ name }) => name);
  yield* faultsOfExports(exported);

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

/** The two names that Zig's linker adds. No other module finds a symbol by its name alone. */
const LINKERS_OWN = ['_mh_dylib_header', '__dso_handle'];

function* faultsOfMachO(target, bytes) {
  const { arch, minimum, libraries, exported, needed, locals, signature } = readMachO(bytes);
  if (arch !== target.arch) yield `is for ${arch}`;
  if (minimum !== '11.0') yield `needs macOS ${minimum}`;
  for (const name of libraries) {
    if (name !== '/usr/lib/libSystem.B.dylib') yield `needs the library ${name}`;
  }
  yield* faultsOfExports(exported.filter((name) => !LINKERS_OWN.includes(name)));
  for (const { name, isFromLibrary } of needed) {
    if (!isFromLibrary && !nodeApi.has(name)) yield `needs ${name}, which nobody has`;
  }
  if (locals > 0) yield `has ${locals} local symbols: it is not stripped`;
  // macOS on ARM starts nothing that is not signed.
  if (signature === undefined ? arch === 'arm64' : signature !== 'ad-hoc') {
    yield `has a signature that is ${signature ?? 'missing'}`;
  }
}

/** Libraries of Windows 10. */
const WINDOWS = /^(kernel32|advapi32|ntdll|msvcrt|api-ms-win-crt-[a-z]+-l1-1-0)\.dll$/i;

function* faultsOfPe(target, bytes) {
  const { arch, minimum, exported, libraries, delayed } = readPe(bytes);
  if (arch !== target.arch) yield `is for ${arch}`;
  if (Number.parseFloat(minimum) > 10) yield `needs Windows ${minimum}`;
  for (const name of libraries) if (!WINDOWS.test(name)) yield `needs the library ${name}`;
  for (const name of delayed) if (name !== 'node.exe') yield `needs the library ${name}`;
  yield* faultsOfExports(exported);
}

const MOST_BYTES = 800_000;
const faultsOf = { linux: faultsOfElf, win32: faultsOfPe, darwin: faultsOfMachO };

/** What is wrong with the binary at `path`, in words. */
function* faults(target, path) {
  const bytes = readFileSync(path);
  if (process.argv.includes('--exports')) {
    const { exported } = target.platform === 'darwin' ? readMachO(bytes) : readPe(bytes);
    yield* faultsOfExports(exported.filter((name) => !LINKERS_OWN.includes(name)));
    return;
  }
  if (bytes.length > MOST_BYTES) yield `has ${bytes.length} bytes, more than ${MOST_BYTES}`;
  if (bytes.includes(root)) yield 'has a path of the machine that built it';
  try {
    yield* faultsOf[target.platform](target, bytes, path);
  } catch (error) {
    yield error.message;
  }
}

/**
 * Faults, each planted into a copy of a binary, which must be found.
 *
 * @returns {Generator<[what: string, bytes: Buffer]>}
 */
function* planted(target, bytes) {
  const replaced = (text, by) => {
    const copy = Buffer.from(bytes);
    for (let at = copy.indexOf(text); at >= 0; at = copy.indexOf(text, at + 1)) copy.write(by, at);
    return copy;
  };
  const other = targets.find(
    (each) =>
      (each.platform !== target.platform || each.arch !== target.arch) &&
      existsSync(join(root, fileOf(each))),
  );
  if (other) yield ['another platform', readFileSync(join(root, fileOf(other)))];
  yield ['an export too few', replaced(EXPORTS[0], 'napi_register_module_v2')];
  yield ['a large binary', Buffer.concat([bytes, Buffer.alloc(MOST_BYTES)])];
  yield ['a path of the builder', Buffer.concat([bytes, Buffer.from(root)])];
  if (target.platform === 'darwin') {
    yield ['a library of the builder', replaced('/usr/lib/libSystem.B', '/opt/lib/libSystem.B')];
    yield ['a function that nobody has', replaced('napi_create_array\0', 'napi_create_arroy\0')];
    const at = bytes.indexOf(Buffer.from([0x32, 0, 0, 0, 0x20, 0, 0, 0])); // LC_BUILD_VERSION
    const newer = Buffer.from(bytes);
    newer[at + 14] = 26;
    yield ['a newer system', newer];
  }
  if (target.platform === 'darwin' && target.arch === 'arm64') {
    const touched = Buffer.from(bytes);
    touched[Math.floor(touched.length / 2)] ^= 1;
    yield ['a byte that was not signed', touched];
  }
  if (target.platform === 'win32') {
    yield ['a library of the builder', replaced('KERNEL32.dll', 'LIBGCC_1.dll')];
  }
}

const isPlanting = process.argv.includes('--planted');
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
  if (isPlanting) {
    const folder = mkdtempSync(join(tmpdir(), 'allstop-planted-'));
    for (const [what, bytes] of planted(target, readFileSync(path))) {
      const copy = join(folder, 'planted.node');
      writeFileSync(copy, bytes);
      const found = [...faults(target, copy)];
      if (found.length > 0) passed += 1;
      else failed += 1;
      console.log(`${target.name}, ${what}: ${found.slice(0, 2).join('; ') || 'NOT FOUND'}`);
    }
    rmSync(folder, { recursive: true });
    continue;
  }
  const found = [...faults(target, path)];
  console.log(`${target.name}: ${found.length === 0 ? 'ok' : found.join('; ')}`);
  if (found.length === 0) passed += 1;
  else failed += 1;
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
