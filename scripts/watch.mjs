// npm run watch: keeps dist/ up to date while lib/ is edited, for `npx vitest` beside it:
// rolldown bundles again after each change (a fraction of a second), and tsc writes the
// declarations and prints type errors. Ctrl-C ends both.
import { spawn } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { watch } from 'rolldown';
import { inputOptions, outputOptions } from './bundle.mjs';

const root = resolve(import.meta.dirname, '..');
const say = (line) => process.stderr.write(`${line}\n`);

/** A chunk is named after one of its modules: a change of the imports can leave files behind. */
function removeOldChunks(output) {
  const bundled = new Set(output.map(({ fileName }) => join(fileName)));
  for (const file of readdirSync(outputOptions.dir, { recursive: true })) {
    if (/\.js(\.map)?$/.test(file) && !bundled.has(join(file))) {
      rmSync(join(outputOptions.dir, file));
    }
  }
}

let bundled = [];
const collect = {
  name: 'collect',
  writeBundle: (_, output) => void (bundled = Object.values(output)),
};
const watcher = watch({ ...inputOptions, plugins: [collect], output: outputOptions });
watcher.on('event', async (event) => {
  if (event.code === 'BUNDLE_END') {
    removeOldChunks(bundled);
    say(`${new Date().toLocaleTimeString()} bundled dist/ in ${Math.round(event.duration)} ms`);
  }
  if (event.code === 'ERROR') say(`${new Date().toLocaleTimeString()} ${event.error.message}`);
  await event.result?.close();
});

const tsc = join(
  dirname(createRequire(import.meta.url).resolve('typescript/package.json')),
  'bin/tsc',
);
const args = [tsc, '-p', 'tsconfig.json', '--watch', '--preserveWatchOutput'];
const compiler = spawn(process.execPath, args, {
  cwd: root,
  stdio: ['ignore', 'inherit', 'inherit'],
});
process.on('exit', () => compiler.kill());
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));
