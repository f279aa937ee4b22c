// npm run build: compiles the crate to build/Release/addon.node.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';

// cargo itself says where the library is: that depends on its settings (CARGO_BUILD_TARGET).
const args = [
  'build',
  '--release',
  '--target-dir=target',
  '--message-format=json-render-diagnostics',
];
const cargo = spawnSync('cargo', args, {
  encoding: 'utf8',
  maxBuffer: 2 ** 30,
  stdio: ['ignore', 'pipe', 'inherit'],
});
if (cargo.error)
  console.error(
    `cargo cannot be run (${cargo.error.message}). It comes with Rust: https://rustup.rs`,
  );
if (cargo.status !== 0) process.exit(1);
const made = cargo.stdout
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line));
const library = made.find(
  ({ target }) => target?.name === 'addon' && target.kind.includes('cdylib'),
);

mkdirSync('build/Release', { recursive: true });
rmSync('build/Release/addon.node', { force: true }); // a program that runs may have it mapped
copyFileSync(library.filenames[0], 'build/Release/addon.node');
