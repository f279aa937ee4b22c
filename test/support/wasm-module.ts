/** The smallest module of WebAssembly. The types of Node have no WebAssembly. */

type WithModules = { WebAssembly: { Module: new (bytes: Uint8Array) => object } };
const { WebAssembly } = globalThis as unknown as WithModules;

export const wasmModule: object = new WebAssembly.Module(
  Uint8Array.from([0, ...Buffer.from('asm', 'latin1'), 1, 0, 0, 0]),
);
