import { type ChildProcess, execFile } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type Reporter, type TestModule, type TestSpecification } from 'vitest/node';

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/**
 * Puts the path of a nats-server into NATS_SERVER_BIN, where the tests look for it.
 *
 * @returns undefined, or why there is no server
 */
async function findNatsServer(): Promise<string | undefined> {
  return await new Promise((resolve) => {
    const child = execFile('bash', [path('scripts/nats-server.sh')], (error, stdout, stderr) => {
      if (error === null) process.env['NATS_SERVER_BIN'] = stdout.trim();
      resolve(error === null ? undefined : stderr.trim().split('\n').at(-1) || error.message);
    });
    child.stderr?.pipe(process.stderr); // that it fetches one takes a while
  });
}

const noServer = await findNatsServer();
if (noServer !== undefined && process.env['ALLSTOP_REQUIRE_NATS']) {
  throw new Error(`ALLSTOP_REQUIRE_NATS is set, and there is no NATS server: ${noServer}`);
}

/** Says at the end how many test files have tests that were skipped for want of a server. */
const skippedFiles: Reporter & { tagsFilter: string[] } = {
  tagsFilter: [],
  onInit({ config }) {
    this.tagsFilter = config.tagsFilter ?? [];
  },
  onTestRunEnd(modules) {
    const isChosen = (tags: string[]): boolean =>
      tags.includes('nats') &&
      !(tags.includes('long')
        ? this.tagsFilter.includes('!long')
        : this.tagsFilter.includes('long'));
    const count = modules.filter((module: TestModule) =>
      [...module.children.allTests()].some(({ tags }) => isChosen(tags)),
    ).length;
    if (noServer === undefined || count === 0) return;
    process.stderr.write(
      `\n${count} test files need a NATS server and were skipped, in whole or in part. ${noServer}\n`,
    );
  },
};

// Vitest says of a process of tests that died only "Worker exited unexpectedly".
const deaths: string[] = [];
subscribe('child_process', (message) => {
  const { process: child } = message as { process: ChildProcess };
  child.once('spawn', () => {
    if (!child.spawnargs.some((argument) => argument.endsWith('workers/forks.js'))) return;
    let last = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      last = `${last}${chunk.toString()}`.slice(-2_000);
    });
    child.once('close', (code, signal) => {
      if (signal === 'SIGTERM') return; // Vitest ended it
      deaths.push(`A process of tests, ${child.pid}, ended: ${signal ?? code}. It wrote:\n${last}`);
    });
  });
});

/** Says at the end how processes died, and which tests have no result because of that. */
const unfinished: Reporter = {
  onTestRunEnd(modules) {
    for (const death of deaths) process.stderr.write(`\n${death}\n`);
    for (const module of modules) {
      for (const test of module.children.allTests('pending')) {
        process.stderr.write(`\nNo result: ${module.moduleId} > ${test.fullName}\n`);
      }
    }
  },
};

/** Starts first what compiles an addon: at the end, a compiler would use one processor of several. */
class CompilersFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const compiles = ({ moduleId }: TestSpecification): boolean =>
      /\/(recipes\/ingest|package\/build)\.test\.ts$/.test(moduleId);
    const ordered = await super.sort(files); // oxlint-disable-line unicorn/no-array-sort
    return [...ordered.filter(compiles), ...ordered.filter((file) => !compiles(file))];
  }
}

export default defineConfig({
  resolve: {
    // The built package, as its users import it.
    alias: {
      'allstop/pool': path('dist/pool/index.js'),
      'allstop/cluster': path('dist/cluster/index.js'),
      'allstop/nats': path('dist/nats/index.js'),
      'allstop/testing': path('dist/testing/index.js'),
      'allstop/sqlite': path('dist/sqlite/index.js'),
      'allstop/http': path('dist/http/index.js'),
      allstop: path('dist/index.js'),
    },
  },
  test: {
    include: ['test/**/*.test.ts'],
    tags: [
      { name: 'long', description: 'not for `npm test`: `npm run test:long` runs it' },
      { name: 'nats', description: 'needs a NATS server', skip: noServer !== undefined },
      { name: 'property', description: 'many random runs', timeout: 300_000 },
    ],
    sequence: { sequencer: CompilersFirst },
    reporters: ['default', skippedFiles, unfinished],
    // A crash of the addon is reported, and every file has a process of its own:
    // the registry of coordinators is process-wide.
    pool: 'forks',
    // Node itself loads dist/, so that no process waits for Vitest's version of it, and V8 counts the
    // coverage in the file; and, as without this setting, the modules of clusters.
    server: { deps: { external: [/\/dist\//, /\.mjs$/] } },
    // Most of the time they wait for other processes.
    maxWorkers: 2 * availableParallelism(),
    // Ends a test that hangs. Beside two other runs a test of parameter servers has taken 63 s.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    execArgv: ['--expose-gc'],
  },
});
