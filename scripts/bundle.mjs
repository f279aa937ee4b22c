// Compiles lib/ into few files: a program, and each of its workers, loads them in half the
// time that forty modules take. The declarations are tsc's.
import { join, resolve } from 'node:path';
import { rolldown } from 'rolldown';

const root = resolve(import.meta.dirname, '..');
const lib = (file) => join(root, 'lib', file);
const bundle = await rolldown({
  input: {
    index: lib('index.ts'),
    'cluster/index': lib('cluster/index.ts'),
    'cluster/nats/index': lib('cluster/nats/index.ts'),
    'allstop-worker': lib('allstop-worker.ts'),
    'cli/main': lib('cli/main.ts'),
    'cli/probe-process': lib('cli/doctor/probe-process.ts'),
    'cli/self-test-worker': lib('cli/doctor/self-test-worker.ts'),
  },
  platform: 'node',
  external: [/^@nats-io\//],
  transform: { target: 'node20.19' },
  onLog(level, { message }) {
    throw new Error(`${level}: ${message}`);
  },
});
// package-files.ts counts on being in dist/ itself.
await bundle.write({
  dir: join(root, 'dist'),
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: '[name]-[hash].js',
  // What other bundlers read: not to follow an import.
  comments: { annotation: true, legal: false, jsdoc: false },
});
await bundle.close();
