// Reads what test-prebuilds.mjs wants to know of a binary for Windows (PE, 64 bits), and takes exports
// out of one.

const ARCH = { 0x86_64: 'x64', 0xaa_64: 'arm64' };

const textAt = (bytes, at) => bytes.toString('latin1', at, bytes.indexOf(0, at));

/** The headers, and the place in the file of what is loaded at an address. */
function open(bytes) {
  const header = bytes.readUInt32LE(0x3c);
  const optional = header + 24;
  if (bytes.toString('latin1', header, header + 4) !== 'PE\0\0') throw new Error('is no PE');
  if (bytes.readUInt16LE(optional) !== 0x2_0b) throw new Error('is no PE of 64 bits');
  const sections = optional + bytes.readUInt16LE(header + 20);
  const placeOf = (address) => {
    for (let left = bytes.readUInt16LE(header + 6), at = sections; left > 0; left -= 1, at += 40) {
      const [start, size, place] = [12, 16, 20].map((field) => bytes.readUInt32LE(at + field));
      if (address >= start && address < start + size) return address - start + place;
    }
    throw new Error(`has nothing at the address ${address}`);
  };
  /** The place of a table, by its number; undefined: there is none. */
  const tableOf = (number) => {
    const address = bytes.readUInt32LE(optional + 112 + 8 * number);
    return address === 0 ? undefined : placeOf(address);
  };
  return { header, optional, placeOf, tableOf };
}

/** The table of exports. */
function exportsOf(bytes, { placeOf, tableOf }) {
  const table = tableOf(0);
  if (table === undefined) return { table, entries: [] };
  const count = bytes.readUInt32LE(table + 24);
  const places = [28, 32, 36].map((field) => placeOf(bytes.readUInt32LE(table + field)));
  const [functions, names, ordinals] = places;
  const entries = Array.from({ length: count }, (_, index) => {
    const address = bytes.readUInt32LE(names + 4 * index);
    const ordinal = bytes.readUInt16LE(ordinals + 2 * index);
    return { address, ordinal, name: textAt(bytes, placeOf(address)) };
  });
  return { table, functions, names, ordinals, entries };
}

function* librariesOf(bytes, { placeOf }, table, size, field) {
  if (table === undefined) return;
  for (let at = table; bytes.readUInt32LE(at + field) !== 0; at += size) {
    yield textAt(bytes, placeOf(bytes.readUInt32LE(at + field)));
  }
}

export function readPe(bytes) {
  const file = open(bytes);
  const { header, optional, tableOf } = file;
  return {
    arch: ARCH[bytes.readUInt16LE(header + 4)],
    minimum: [48, 50].map((field) => bytes.readUInt16LE(optional + field)).join('.'),
    exported: exportsOf(bytes, file).entries.map(({ name }) => name),
    libraries: [...librariesOf(bytes, file, tableOf(1), 20, 12)],
    delayed: [...librariesOf(bytes, file, tableOf(13), 32, 4)],
  };
}

/** Takes all exports out of the file but these: Zig's linker exports every function. */
export function hideExports(bytes, kept) {
  const file = open(bytes);
  const { table, functions, names, ordinals, entries } = exportsOf(bytes, file);
  const [shown, hidden] = [true, false].map((isShown) =>
    entries.filter(({ name }) => kept.includes(name) === isShown),
  );
  for (const { address, ordinal, name } of hidden) {
    bytes.fill(0, file.placeOf(address), file.placeOf(address) + name.length);
    bytes.writeUInt32LE(0, functions + 4 * ordinal);
  }
  bytes.fill(0, names, names + 4 * entries.length);
  bytes.fill(0, ordinals, ordinals + 2 * entries.length);
  for (const [index, { address, ordinal }] of shown.entries()) {
    bytes.writeUInt32LE(address, names + 4 * index);
    bytes.writeUInt16LE(ordinal, ordinals + 2 * index);
  }
  bytes.writeUInt32LE(shown.length, table + 24);
}
