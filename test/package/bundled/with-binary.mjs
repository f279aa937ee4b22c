// The binary is an asset of the bundler. Its path is set in the environment before the first
// coordinator is made, so that workers get it, too.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import binary from 'allstop/prebuilds/linux-x64/allstop.glibc.node';

// Bundlers return a URL, a path, or a path relative to the folder of the bundle.
const path = binary.startsWith('file:') ? fileURLToPath(binary) : binary;
process.env.ALLSTOP_BINARY = existsSync(path) ? path : join(dirname(process.argv[1]), path);
void import('./main.mjs');
