// npm run build: compiles the crate to build/Release/addon.node.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';

execFileSync('cargo', ['build', '--release', '--target-dir', 'target'], { stdio: 'inherit' });
const library = process.platform === 'darwin' ? 'libaddon.dylib' : 'libaddon.so';
mkdirSync('build/Release', { recursive: true });
rmSync('build/Release/addon.node', { force: true }); // a program that runs may have it mapped
copyFileSync(`target/release/${library}`, 'build/Release/addon.node');
