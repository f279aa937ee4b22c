// Installs the tarball that lies beside this file into an empty project and uses it there. For
// machines without the repository, such as Windows and Alpine: it needs only Node.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const tarball = readdirSync('.').find((name) => /^allstop-.*\.tgz$/.test(name));
if (tarball === undefined) throw new Error('There is no allstop-*.tgz beside this script');
const project = mkdtempSync(join(tmpdir(), 'allstop-use-'));
cpSync(join(import.meta.dirname, '../test/package/consumer'), project, { recursive: true });
writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }\n');
const run = (command, args, options = {}) =>
  execFileSync(command, args, { cwd: project, stdio: 'inherit', ...options });
// On Windows npm is a shell script, which spawn only starts through a shell.
run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', resolve(tarball)], {
  shell: process.platform === 'win32',
});
const cli = join(project, 'node_modules/allstop/dist/cli/main.js');
run(process.execPath, [cli, 'doctor']);
for (const script of ['import.mjs', 'queues.mjs', 'cluster.mjs', 'require.cjs']) {
  run(process.execPath, [script], { timeout: 60_000 });
  console.log(`ok: ${script}`);
}
