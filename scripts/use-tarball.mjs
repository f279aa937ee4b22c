// Installs the tarball in this folder into an empty project and uses it there: on machines
// that have Node and nothing else of ours, Windows and Alpine among them.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const tarball = readdirSync('.').find((name) => /^allstop-.*\.tgz$/.test(name));
if (tarball === undefined) throw new Error('There is no allstop-*.tgz in this folder');
const project = mkdtempSync(join(tmpdir(), 'allstop-use-'));
cpSync(join(import.meta.dirname, '../test/package/consumer'), project, { recursive: true });
writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }\n');
const run = (command, args, options = {}) =>
  execFileSync(command, args, { cwd: project, stdio: 'inherit', ...options });
// npm is a script of the shell's on Windows.
run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', resolve(tarball)], {
  shell: process.platform === 'win32',
});
const cli = join(project, 'node_modules/allstop/dist/cli/main.js');
run(process.execPath, [cli, 'doctor']);
for (const script of ['import.mjs', 'queues.mjs', 'cluster.mjs', 'require.cjs']) {
  run(process.execPath, [script], { timeout: 60_000 });
  console.log(`ok: ${script}`);
}
