// Builds the binary for this platform into prebuilds/, as it is published.
// node-gyp would download Node's headers; those of a local installation are as
// good, as the addon uses Node-API only.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';

const require = createRequire(import.meta.url);
const prefix = resolve(dirname(process.execPath), '..');
const env = { ...process.env };
if (existsSync(join(prefix, 'include/node/node_api.h'))) env.npm_config_nodedir ??= prefix;

const cli = join(dirname(require.resolve('prebuildify/package.json')), 'bin.js');
const target = process.version.slice(1);
const { status } = spawnSync(process.execPath, [cli, '--napi', '--strip', '-t', target], {
  cwd: resolve(import.meta.dirname, '..'),
  env,
  stdio: ['ignore', process.env.CI ? 'ignore' : 'inherit', 'inherit'],
});
process.exit(status ?? 1);
