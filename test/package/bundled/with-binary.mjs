// The binary as an asset of the bundler's: its path goes into the environment before the
// first coordinator is made, and so reaches the workers, too.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import binary from 'allstop/prebuilds/linux-x64/allstop.glibc.node';

// A bundler's name for it is a URL, a path, or seen from the bundle's folder.
const path = binary.startsWith('file:') ? fileURLToPath(binary) : binary;
process.env.ALLSTOP_BINARY = existsSync(path) ? path : join(dirname(process.argv[1]), path);
void import('./main.mjs');
