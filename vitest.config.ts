import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: {
    // The built package, as its users import it.
    alias: {
      'allstop/cluster': fileURLToPath(new URL('./dist/cluster/index.js', import.meta.url)),
      'allstop/nats': fileURLToPath(new URL('./dist/cluster/nats/index.js', import.meta.url)),
      allstop: fileURLToPath(new URL('./dist/index.js', import.meta.url)),
    },
  },
  test: {
    include: ['test/**/*.test.ts'],
    // A crash of the addon is reported, and every file has a process of its own:
    // the registry of coordinators is process-wide.
    pool: 'forks',
    // Most of the time they wait for other processes.
    maxWorkers: availableParallelism() + 1,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    execArgv: ['--expose-gc'],
  },
});
