// test-types.mjs PROJECT [--all]: compiles PROJECT/consumer.ts and consumer.cts, which use the package
// that is installed in PROJECT, with several versions of TypeScript and @types/node, and without
// skipLibCheck. Without --all the oldest and the newest; they come from the npm registry.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const [project, mode] = process.argv.slice(2);
const root = resolve(import.meta.dirname, '..');
const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const OLDEST = '5.4.5';
const NEWEST = devDependencies.typescript;
const combinations = [
  { typescript: OLDEST, types: '20', resolutions: ['node10', 'node16', 'bundler'] },
  { typescript: NEWEST, types: '26', resolutions: ['node16', 'nodenext', 'bundler'] },
];
if (mode === '--all') {
  for (const typescript of [OLDEST, '5.9.3', NEWEST]) {
    for (const types of ['20', '22', '24', '26'])
      combinations.push({ typescript, types, resolutions: ['node16', 'bundler'] });
  }
}
// TypeScript 5.4 does not know all that the later declarations of Node use.
const isFit = ({ typescript, types }) => typescript !== OLDEST || types === '20';

/** The options of tsc. `require()` of the package is for nodenext alone: see docs/installing.md. */
function optionsOf(resolution, file) {
  const module = { bundler: 'esnext', node10: 'esnext' }[resolution] ?? resolution;
  const lib = 'es2022,es2023,esnext.disposable';
  return `--noEmit --strict --module ${module} --moduleResolution ${resolution} --target es2022 --lib ${lib} --types node --skipLibCheck false ${file}`.split(
    ' ',
  );
}

let failed = 0;
const work = mkdtempSync(join(tmpdir(), 'allstop-types-'));
try {
  cpSync(project, work, { recursive: true });
  for (const { typescript, types, resolutions } of combinations.filter(isFit)) {
    const wanted = [`typescript@${typescript}`, `@types/node@${types}`];
    const install = ['install', '--silent', '--no-audit', '--no-fund', '--no-save', ...wanted];
    writeFileSync(
      join(work, 'consumer.cts'),
      "import { Coordinator } from 'allstop';\nnew Coordinator();\n",
    );
    if (spawnSync('npm', install, { cwd: work, stdio: 'inherit' }).status !== 0) process.exit(1);
    for (const resolution of resolutions) {
      const files = resolution === 'nodenext' ? ['consumer.ts', 'consumer.cts'] : ['consumer.ts'];
      for (const file of files) {
        const tsc = join(work, 'node_modules/.bin/tsc');
        const { status, stdout } = spawnSync(tsc, optionsOf(resolution, file), {
          cwd: work,
          encoding: 'utf8',
        });
        const what = `TypeScript ${typescript}, @types/node ${types}, ${resolution}, ${file}`;
        console.log(status === 0 ? `${what}: ok` : `${what}: FAILED\n${stdout}`);
        if (status !== 0) failed += 1;
      }
    }
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
process.exitCode = failed === 0 ? 0 : 1;
