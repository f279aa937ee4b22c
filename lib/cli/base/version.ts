import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../native/binary/package-files.ts';

type Manifest = { version: string; bugs: { url: string } };

const manifest = JSON.parse(readFileSync(join(root(), 'package.json'), 'utf8')) as Manifest;

/** The version of the package. */
export const version: string = manifest.version;

/** Where faults of the package are reported. */
export const bugsUrl: string = manifest.bugs.url;
