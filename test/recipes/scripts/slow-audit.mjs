// With `node --import`: the audit process of examples/server takes a second longer to start.
if (process.argv[1]?.endsWith('audit.mjs')) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
}
