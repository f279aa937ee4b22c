// Bundles lib/ into few files: a program, and each of its workers, loads few files in half the
// time that forty modules take. The declarations (.d.ts) are written by tsc.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { rolldown } from 'rolldown';
import { pruneDeclarations } from './declarations.mjs';
import { lineMap } from './line-maps.mjs';

const root = resolve(import.meta.dirname, '..');
const lib = (file) => join(root, 'lib', file);

export const inputOptions = {
  input: {
    index: lib('index.ts'),
    'pool/index': lib('pool/index.ts'),
    'cluster/index': lib('cluster/index.ts'),
    'nats/index': lib('nats/index.ts'),
    'testing/index': lib('testing/index.ts'),
    'sqlite/index': lib('sqlite/index.ts'),
    'http/index': lib('http/index.ts'),
    'allstop-worker': lib('allstop-worker.ts'),
    'cli/main': lib('cli/program.ts'),
    'cli/probe-process': lib('cli/doctor/probe-process.ts'),
    'cli/self-test-worker': lib('cli/doctor/self-test-worker.ts'),
    'cli/case-process': lib('cli/check-addon/case-process.ts'),
  },
  platform: 'node',
  external: [/^@nats-io\//, '@opentelemetry/api'],
  transform: { target: 'node20.19' },
  onLog(level, { message }) {
    throw new Error(`${level}: ${message}`);
  },
};

// The bundle lies in dist/ itself, because package-files.ts finds the package's root from there.
export const outputOptions = {
  dir: join(root, 'dist'),
  format: 'esm',
  entryFileNames: '[name].js',
  // Without a hash: a stack trace of one release can be compared with one of another.
  chunkFileNames: '[name].js',
  // Keeps the comments by which a bundler is told not to follow an import.
  comments: { annotation: true, legal: false, jsdoc: false },
  // Few files: each costs Node's loader 0.2 to 0.3 ms. What one entry point alone needs stays with it.
  codeSplitting: {
    groups: [
      {
        name: 'core',
        test: /\/lib\/(?:base\/(?!synced-files)|errors\/(?!phases)|(?:coordinator|native|record|queue|looper|telemetry)\/)/,
        minShareCount: 2,
        priority: 3,
      },
      // What a worker needs beside the core. Without current-call.ts, which makes each `await` of the
      // thread that loads it slower (call-store.ts).
      {
        name: 'worker',
        test: /\/lib\/(?:values\/|pool\/worker\/(?!current-call)|cluster\/variables\/variable\.)/,
        minShareCount: 2,
        priority: 2,
      },
      { name: 'calls', test: /\/lib\/(?:pool\/|errors\/phases)/, minShareCount: 2, priority: 1 },
      // What a pool does not need.
      {
        name: 'cluster',
        test: /\/lib\/(?:cluster\/|base\/synced-files)/,
        minShareCount: 2,
        priority: 1,
      },
    ],
  },
  // With `node --enable-source-maps` a stack names the line of lib/. The maps have no copy of the
  // sources, which would be 430 KB more to download.
  sourcemap: true,
  sourcemapExcludeSources: true,
};

/**
 * Third-party code is bundled into the command line and published with it, so the licences of
 * that code are published, too.
 *
 * @param {{ moduleIds?: string[] }[]} output
 */
function writeLicences(output) {
  const folders = output
    .flatMap(({ moduleIds = [] }) => moduleIds)
    .map((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0])
    .filter((folder) => folder !== undefined);
  const licences = [...new Set(folders)].toSorted().map((folder) => {
    const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
    if (file === undefined) throw new Error(`${folder} is bundled, and has no licence`);
    const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return `${name} ${version}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
  });
  writeFileSync(join(root, 'dist/cli/LICENSES.txt'), licences.join(`\n${'-'.repeat(72)}\n\n`));
}

/**
 * The maps name lines only, which is 110 KB less to download. The command line goes without, which is
 * another 40 KB: its stacks are those of a program, not of a library.
 *
 * @param {import('rolldown').RolldownOutput['output']} output
 */
function writeMaps(output) {
  const chunks = new Map(
    output.flatMap((each) => (each.type === 'chunk' ? [[each.fileName, each]] : [])),
  );
  const ofLibrary = new Set();
  function reach(fileName) {
    const chunk = chunks.get(fileName);
    if (chunk === undefined || ofLibrary.has(fileName)) return;
    ofLibrary.add(fileName);
    for (const each of [...chunk.imports, ...chunk.dynamicImports]) reach(each);
  }
  for (const { fileName, isEntry } of chunks.values()) {
    if (isEntry && !fileName.startsWith('cli/')) reach(fileName);
  }
  for (const fileName of chunks.keys()) {
    const file = join(root, 'dist', fileName);
    if (ofLibrary.has(fileName)) {
      if (!existsSync(`${file}.map`)) continue; // a file of re-exports only has none
      const map = JSON.parse(readFileSync(`${file}.map`, 'utf8'));
      writeFileSync(`${file}.map`, JSON.stringify(lineMap(map)));
      continue;
    }
    const code = readFileSync(file, 'utf8');
    writeFileSync(file, code.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'));
    rmSync(`${file}.map`, { force: true });
  }
}

/**
 * V8 keeps a source with one letter beyond Latin-1 in two bytes a letter, in each thread, and decodes
 * it as UTF-8. Strings, templates and regular expressions alone have such letters (the bundle has no
 * comments with them), where an escape is the same.
 *
 * @param {import('rolldown').RolldownOutput['output']} output
 */
function toAscii(output) {
  for (const { type, fileName } of output) {
    if (type !== 'chunk') continue;
    const file = join(root, 'dist', fileName);
    const code = readFileSync(file, 'utf8');
    const ascii = code.replaceAll(
      /[^\0-\x7f]/g, // oxlint-disable-line no-control-regex
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    if (ascii !== code) writeFileSync(file, ascii);
  }
}

const REFUSE_OLD_NODE =
  'if (process.getBuiltinModule === undefined) throw new Error(`allstop needs Node 20.19, or 22.3 or later, and this is ${process.version}`);';

/**
 * An import of a module of Node's reads all its exports, and so loads what they load when they are
 * first read: `node:fs` all streams, `node:util` parsers of arguments and of MIME types. The library
 * takes what it names. The line numbers stay. The core, which runs first, refuses a Node that has no
 * such function (21, and 22 before 22.3, too).
 *
 * @param {import('rolldown').RolldownOutput['output']} output
 */
function takeBuiltins(output) {
  for (const { type, fileName } of output) {
    if (type !== 'chunk' || fileName.startsWith('cli/')) continue;
    const file = join(root, 'dist', fileName);
    const code = readFileSync(file, 'utf8');
    const taken = code.replaceAll(
      /^import (?:(\w+)(?:, )?)?(?:(\{.*\}))? ?from "(node:[\w/]+)";$/gm,
      (_, whole, names, from) => {
        const module = `process.getBuiltinModule("${from}")`;
        const parts = names?.replaceAll(' as ', ': ');
        if (whole === undefined) return `const ${parts} = ${module};`;
        return `const ${whole} = ${module}${parts === undefined ? '' : `, ${parts} = ${whole}`};`;
      },
    );
    if (taken === code) continue;
    writeFileSync(file, fileName === 'core.js' ? `${REFUSE_OLD_NODE} ${taken}` : taken);
  }
}

export async function bundle() {
  const build = await rolldown(inputOptions);
  const { output } = await build.write(outputOptions);
  await build.close();
  writeLicences(output);
  toAscii(output);
  takeBuiltins(output);
  writeMaps(output);
  pruneDeclarations(root, JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')));
}
