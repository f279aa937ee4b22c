// A module of WebAssembly, as bytes. A compiler makes them from C, Rust or this text; all that a stop
// needs is the load in the loop. It is atomic, and the memory is shared, since others write the word.
//
// (module
//   (import "env" "memory" (memory 1 1 shared))
//   (func (export "count") (result i64) (local $n i64)
//     loop $next
//       (local.set $n (i64.add (local.get $n) (i64.const 1)))
//       (br_if $next (i32.eqz (i32.atomic.load (i32.const 0))))  ;; the stop word
//     end
//     (local.get $n)))

/** The index of the stop word in the memory, as an Int32Array. */
export const STOP_WORD = 0;

const sized = (...bytes) => [bytes.length, ...bytes];
const text = (ascii) => sized(...Buffer.from(ascii));
const section = (id, ...bytes) => [id, ...sized(...bytes)];
const MAGIC = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0]; // '\0asm', version 1
const I64 = 0x7e;
const LOOP = [0x03, 0x40];
const NEXT = [0x20, 0, 0x42, 1, 0x7c, 0x21, 0]; // n = n + 1
const AGAIN = [0x41, 0, 0xfe, 0x10, 2, 0, 0x45, 0x0d, 0]; // if the word at 0 is 0
const END = 0x0b;

const BYTES = new Uint8Array([
  ...MAGIC,
  ...section(1, 1, 0x60, 0, 1, I64), // a type: no parameter, one result
  ...section(2, 1, ...text('env'), ...text('memory'), 2, 3, 1, 1),
  ...section(3, 1, 0), // a function of that type
  ...section(7, 1, ...text('count'), 0, 0),
  ...section(10, 1, ...sized(1, 1, I64, ...LOOP, ...NEXT, ...AGAIN, END, 0x20, 0, END)),
]);

/** @returns {Promise<{ count(): bigint }>} */
export async function instantiate(memory) {
  const { instance } = await WebAssembly.instantiate(BYTES, { env: { memory } });
  return instance.exports;
}
