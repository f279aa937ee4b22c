import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../native/binary/package-files.ts';

const manifest = readFileSync(join(root(), 'package.json'), 'utf8');

/** The version of the package. */
export const version: string = (JSON.parse(manifest) as { version: string }).version;
