// Reads what test-prebuilds.mjs wants to know of a binary for macOS (Mach-O, 64 bits, one processor).
import { createHash } from 'node:crypto';

const ARCH = { 0x01_00_00_07: 'x64', 0x01_00_00_0c: 'arm64' };
const LIBRARY = [0xc, 0x80_00_00_18, 0x80_00_00_1f]; // needed, weak, exported again
const [SYMBOLS, VERSION, SIGNATURE] = [0x2, 0x32, 0x1d];
const [DYLD_INFO, EXPORTS_TRIE] = [0x80_00_00_22, 0x80_00_00_33];
const IS_EXTERNAL = 1;
const [TYPE, UNDEFINED] = [0xe, 0];
const DYNAMIC_LOOKUP = 0xfe; // as a library's number: any module's

const textAt = (bytes, at) => bytes.toString('latin1', at, bytes.indexOf(0, at));
/** A C name, as the sources have it. */
const nameAt = (bytes, at) => textAt(bytes, at).replace(/^_/, '');

function* commandsOf(bytes) {
  if (bytes.readUInt32LE(0) !== 0xfe_ed_fa_cf) throw new Error('is no Mach-O of 64 bits');
  let at = 32;
  for (let left = bytes.readUInt32LE(16); left > 0; left -= 1) {
    yield { at, command: bytes.readUInt32LE(at) };
    at += bytes.readUInt32LE(at + 4);
  }
}

function* symbolsOf(bytes, at) {
  const [symbols, count, strings] = [8, 12, 16].map((field) => bytes.readUInt32LE(at + field));
  for (let symbol = symbols; symbol < symbols + 16 * count; symbol += 16) {
    const type = bytes[symbol + 4];
    yield {
      name: nameAt(bytes, strings + bytes.readUInt32LE(symbol)),
      isExternal: (type & IS_EXTERNAL) !== 0,
      isDefined: (type & TYPE) !== UNDEFINED,
      library: bytes[symbol + 7],
    };
  }
}

/** The names in the tree in which dyld looks up exports. */
function exportsIn(trie, at = 0, prefix = '') {
  const number = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = trie[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  const size = number();
  const names = size > 0 ? [prefix.replace(/^_/, '')] : [];
  at += size;
  for (let left = trie[at++]; left > 0; left -= 1) {
    const edge = textAt(trie, at);
    at += edge.length + 1;
    names.push(...exportsIn(trie, number(), prefix + edge));
  }
  return names;
}

/** Whether each page of the file has the hash that was signed, and by whom. */
function signatureOf(bytes, at) {
  const blob = bytes.subarray(bytes.readUInt32LE(at + 8));
  const directory = blob.subarray(blob.readUInt32BE(16)); // the first entry
  if (blob.readUInt32BE(0) !== 0xfa_de_0c_c0 || directory.readUInt32BE(0) !== 0xfa_de_0c_02)
    return 'unreadable';
  const [flags, hashes, , , pages, end] = [12, 16, 20, 24, 28, 32].map((field) =>
    directory.readUInt32BE(field),
  );
  const [size, kind, , log2] = directory.subarray(36);
  if (kind !== 2) return 'not of SHA-256';
  for (let page = 0; page < pages; page += 1) {
    const content = bytes.subarray(page << log2, Math.min((page + 1) << log2, end));
    const signed = directory.subarray(hashes + page * size, hashes + (page + 1) * size);
    if (!createHash('sha256').update(content).digest().equals(signed)) return 'broken';
  }
  return (flags & 2) === 0 ? 'not ad-hoc' : 'ad-hoc';
}

export function readMachO(bytes) {
  const arch = ARCH[bytes.readUInt32LE(4)];
  /** @type {string[]} */
  const libraries = [];
  let minimum;
  let signature;
  const symbols = [];
  let trie = [];
  for (const { at, command } of commandsOf(bytes)) {
    const [first, second] = [8, 12].map((field) => bytes.readUInt32LE(at + field));
    if (LIBRARY.includes(command)) libraries.push(textAt(bytes, at + first));
    else if (command === VERSION) minimum = `${second >>> 16}.${(second >>> 8) & 255}`;
    else if (command === SYMBOLS) symbols.push(...symbolsOf(bytes, at));
    else if (command === SIGNATURE) signature = signatureOf(bytes, at);
    else if (command === EXPORTS_TRIE) trie = exportsIn(bytes.subarray(first, first + second));
    else if (command === DYLD_INFO) trie = exportsIn(bytes.subarray(bytes.readUInt32LE(at + 40)));
  }
  const external = symbols.filter(({ isExternal }) => isExternal);
  const exported = external.filter(({ isDefined }) => isDefined).map(({ name }) => name);
  if (exported.length !== trie.length || !exported.every((name) => trie.includes(name)))
    throw new Error(`exports ${trie.join()}, and its symbols say ${exported.join()}`);
  return {
    arch,
    minimum,
    libraries,
    signature,
    exported,
    needed: external
      .filter(({ isDefined }) => !isDefined)
      .map(({ name, library }) => ({
        name,
        isFromLibrary: library > 0 && library < DYNAMIC_LOOKUP,
      })),
    locals: symbols.length - external.length,
  };
}
