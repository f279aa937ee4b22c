// Bundles a program that uses the packed tarball, with each of the common bundlers, and runs the
// bundle in a folder of its own. There are three ways to bundle: prebuilds/ copied beside the
// bundle; the binary as an asset of the bundler, by its literal path; the package left out of the
// bundle (external), in node_modules. Bundles become single executable applications of Node and of
// Bun. A tracer (@vercel/nft) copies the files that a program needs, and nothing comes along by hand.
//   node scripts/test-bundlers.mjs [--only NAME] [--write] [TARBALL]
// --write puts the table into docs/installing.md.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import Table from 'cli-table3';

const root = resolve(import.meta.dirname, '..');
const folder = join(root, 'build-bundlers');
const work = mkdtempSync(join(tmpdir(), 'allstop-bundlers-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
const packages = [
  '@oven/bun-linux-x64@1.4.5',
  '@vercel/nft@1.11.5',
  'esbuild@0.28.2',
  'postject@1.0.0-alpha.6',
  'rollup@4.68.7',
  '@rollup/plugin-node-resolve@16.0.3',
  'vite@8.3.8',
  'webpack@5.112.2',
];
const require = createRequire(join(folder, 'package.json'));
const load = async (name) => {
  const module = await import(pathToFileURL(require.resolve(name)));
  return module.default ?? module;
};

function fetchBundlers() {
  if (existsSync(join(folder, 'node_modules/@vercel/nft'))) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const flags = ['--no-save', '--no-audit', '--no-fund', '--silent', '--ignore-scripts'];
  execFileSync('npm', ['install', ...flags, ...packages], { cwd: folder, stdio: 'inherit' });
}

/** Each bundler writes a bundle NAME.EXTENSION into `out` for each of `entries` (NAME: file). */
const bundlers = {
  async esbuild({ entries, out, format, external, asset, splitting = false, cwd }) {
    const { build } = await load('esbuild');
    await build({
      absWorkingDir: cwd,
      entryPoints: entries,
      outdir: out,
      outExtension: { '.js': format === 'cjs' ? '.cjs' : '.mjs' },
      bundle: true,
      platform: 'node',
      target: 'node20',
      format,
      splitting,
      external: external ? ['allstop'] : [],
      loader: asset ? { '.node': 'file' } : {},
      logLevel: 'error',
      logOverride: { 'empty-import-meta': 'silent' },
    });
  },

  async nft({ entries, out, cwd }) {
    const { nodeFileTrace } = await load('@vercel/nft');
    const { fileList } = await nodeFileTrace(Object.values(entries), { base: cwd });
    for (const file of fileList) {
      mkdirSync(dirname(join(out, file)), { recursive: true });
      cpSync(join(cwd, file), join(out, file));
    }
  },

  async rolldown({ entries, out, external }) {
    const { rolldown } = await import('rolldown');
    const bundle = await rolldown({
      input: entries,
      platform: 'node',
      external: external ? [/^allstop/] : [],
      onLog(level, { message }) {
        throw new Error(`${level}: ${message}`);
      },
    });
    await bundle.write({ dir: out, format: 'es', entryFileNames: '[name].mjs' });
    await bundle.close();
  },

  bun({ entries, out, cwd }) {
    const bun = join(folder, 'node_modules/@oven/bun-linux-x64/bin/bun');
    const flags = ['build', '--compile', '--outfile', join(out, 'app'), ...Object.values(entries)];
    execFileSync(bun, flags, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
  },

  async rollup({ entries, out, external }) {
    const { rollup } = await load('rollup');
    const { nodeResolve } = await import(
      pathToFileURL(require.resolve('@rollup/plugin-node-resolve'))
    );
    const bundle = await rollup({
      input: entries,
      external: (id) => id.startsWith('node:') || (external && id.startsWith('allstop')),
      plugins: [nodeResolve({ exportConditions: ['node'] })],
      onwarn(warning) {
        throw new Error(warning.message);
      },
    });
    await bundle.write({ dir: out, format: 'es', entryFileNames: '[name].mjs' });
    await bundle.close();
  },

  async vite({ entries, out, external, asset, cwd }) {
    const vite = await import(pathToFileURL(join(folder, 'node_modules/vite/dist/node/index.js')));
    await vite.build({
      root: cwd,
      configFile: false,
      logLevel: 'error',
      assetsInclude: asset ? ['**/*.node'] : [],
      ssr: { noExternal: external ? [] : true, external: external ? ['allstop'] : [] },
      build: {
        ssr: true,
        ssrEmitAssets: true,
        outDir: out,
        emptyOutDir: false,
        target: 'node20',
        rollupOptions: { input: entries, output: { entryFileNames: '[name].mjs' } },
      },
    });
  },

  async webpack({ entries, out, external, asset, cwd }) {
    const webpack = await load('webpack');
    const configuration = {
      context: cwd,
      mode: 'production',
      target: 'node20',
      entry: entries,
      experiments: { outputModule: true },
      output: {
        path: out,
        filename: '[name].mjs',
        module: true,
        chunkFormat: 'module',
        library: { type: 'module' },
      },
      externalsType: 'module',
      externals: external ? ['allstop'] : [],
      // Otherwise webpack writes absolute paths of this machine into the bundle, and makes assets
      // of the package's workers, which are entry points here.
      module: {
        parser: { javascript: { importMeta: false, url: false } },
        rules: asset ? [{ test: /\.node$/, type: 'asset/resource' }] : [],
      },
      optimization: { minimize: true },
    };
    await new Promise((done, fail) => {
      webpack(configuration, (error, stats) => {
        if (error || stats.hasErrors() || stats.hasWarnings())
          fail(error ?? new Error(stats.toString({ all: false, errors: true, warnings: true })));
        else done();
      });
    });
  },
};

const cases = [
  { name: 'nft', traced: true },
  { name: 'esbuild', format: 'esm' },
  { name: 'esbuild', format: 'esm', splitting: true },
  { name: 'esbuild', format: 'cjs' },
  { name: 'esbuild', format: 'cjs', application: 'Node' },
  { name: 'esbuild', format: 'esm', asset: true },
  { name: 'esbuild', format: 'esm', external: true },
  { name: 'rolldown' },
  { name: 'rolldown', external: true },
  { name: 'rollup' },
  { name: 'rollup', external: true },
  { name: 'vite' },
  { name: 'vite', asset: true },
  { name: 'vite', external: true },
  { name: 'webpack' },
  { name: 'webpack', asset: true },
  { name: 'webpack', external: true },
  { name: 'bun', application: 'Bun' },
];

/** Makes the single executable application `app` of `main.cjs`, in the folder of the bundle. */
async function makeApplication(bundle) {
  const blob = join(bundle, 'app.blob');
  const configuration = join(bundle, 'app.json');
  writeFileSync(configuration, JSON.stringify({ main: join(bundle, 'main.cjs'), output: blob }));
  const flags = ['--experimental-sea-config', configuration];
  execFileSync(process.execPath, flags, { stdio: ['ignore', 'ignore', 'inherit'] });
  const app = join(bundle, 'app');
  copyFileSync(process.execPath, app);
  const { inject } = await load('postject');
  await inject(app, 'NODE_SEA_BLOB', readFileSync(blob), {
    sentinelFuse: 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2',
  });
  return app;
}

async function tryBundler(name, options, project) {
  const out = mkdtempSync(join(work, `${name}-`));
  const source = (file) => join(project, file);
  const isModule = options.format !== 'cjs';
  const entries = {
    main: source(options.asset ? 'with-binary.mjs' : 'main.mjs'),
    worker: source('worker.mjs'),
  };
  if (!options.external) entries.tick = source('tick.mjs');
  if (!options.external && !options.traced) {
    entries['allstop-worker'] = source('allstop-worker.mjs');
  }
  await bundlers[name]({ ...options, entries, out, cwd: project });
  const isBun = options.application === 'Bun';
  const extension = isBun ? 'js' : isModule ? 'mjs' : 'cjs';
  if (options.external) {
    cpSync(join(project, 'node_modules'), join(out, 'node_modules'), { recursive: true });
  } else if (!options.asset && !options.traced) {
    cpSync(join(project, 'node_modules/allstop/prebuilds'), join(out, 'prebuilds'), {
      recursive: true,
    });
  }
  const env = { ...process.env, BUNDLED_WORKER: `./worker.${extension}` };
  if (entries.tick) env.BUNDLED_TICK = `./tick.${extension}`;
  // The bundle is moved and the project renamed, so that nothing is loaded from where it was built.
  const moved = mkdtempSync(join(tmpdir(), 'allstop-bundle-'));
  cpSync(out, moved, { recursive: true });
  const command = {
    undefined: () => [process.execPath, join(moved, `main.${extension}`)],
    Node: async () => [await makeApplication(moved)],
    Bun: () => [join(moved, 'app')],
  };
  const application = await command[options.application]();
  if (options.application === 'Node') env.BUNDLED_APPLICATION = '1';
  if (isBun) env.ALLSTOP_BINARY = join(moved, 'prebuilds/linux-x64/allstop.glibc.node');
  const hidden = `${project}-hidden`;
  execFileSync('mv', [project, hidden]);
  try {
    const [program, ...args] = application;
    const { status, stdout, stderr } = spawnSync(program, args, {
      cwd: moved,
      env,
      encoding: 'utf8',
      timeout: 60_000,
    });
    if (status !== 0 || stdout !== 'it ran\n') throw new Error(`${stderr}${stdout}`);
  } finally {
    execFileSync('mv', [hidden, project]);
    rmSync(moved, { recursive: true, force: true });
  }
}

fetchBundlers();
const { values: flagsGiven, positionals } = parseArgs({
  options: { only: { type: 'string' }, write: { type: 'boolean' } },
  allowPositionals: true,
});
const tarball = resolve(
  positionals[0] ??
    execFileSync('bash', [join(root, 'scripts/pack.sh'), work], { encoding: 'utf8' }).trim(),
);
const project = join(work, 'project');
cpSync(join(root, 'test/package/bundled'), project, { recursive: true });
cpSync(join(root, 'test/package/consumer/tick.mjs'), join(project, 'tick.mjs'));
writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }\n');
const flags = ['--silent', '--no-audit', '--no-fund', '--ignore-scripts'];
execFileSync('npm', ['install', ...flags, tarball], { cwd: project, stdio: 'inherit' });

const chosen = cases.filter(({ name }) => [undefined, name].includes(flagsGiven.only));
const rows = [];
let failed = 0;
for (const { name, ...options } of chosen) {
  const { format = 'esm', splitting, asset, external, application, traced } = options;
  let outcome = 'ok';
  try {
    await tryBundler(name, options, project);
  } catch (error) {
    failed += 1;
    outcome = 'failed';
    console.log(`\n${name}, ${JSON.stringify(options)}: ${error.message.slice(0, 2_000)}`);
  }
  const form = application ? `an application of ${application}’s` : format;
  const way = asset ? 'an asset' : external ? 'the package is external' : '`prebuilds` beside it';
  rows.push([
    name,
    traced ? 'a copy' : splitting ? `${form}, with chunks` : form,
    traced ? 'by itself' : application === 'Bun' ? '`ALLSTOP_BINARY`' : way,
    outcome,
  ]);
  process.stderr.write('.');
}
process.stderr.write('\n');
const head = ['bundler', 'output', 'binary', 'outcome'];
const table = new Table({ head, style: { head: [], border: [] } });
table.push(...rows);
console.log(table.toString());
console.log(`${chosen.length - failed} passed, ${failed} failed`);
if (flagsGiven.write) {
  const page = join(root, 'docs/installing.md');
  const ways = new Map(); // a line for each, with its bundlers
  for (const [name, ...way] of rows) {
    const key = way.join(' | ');
    ways.set(key, [...(ways.get(key) ?? []), name]);
  }
  const lines = Array.from(ways, ([way, names]) => [names.join(', '), way]);
  const markdown = [head, head.map(() => '---'), ...lines].map(
    (cells) => `| ${cells.join(' | ')} |`,
  );
  writeFileSync(
    page,
    readFileSync(page, 'utf8').replace(
      /(<!-- bundlers -->)[^]*?(<!-- end -->)/,
      `$1\n\n${markdown.join('\n')}\n\n$2`,
    ),
  );
}
process.exitCode = failed > 0 ? 1 : 0;
