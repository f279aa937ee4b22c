/** What the child process of a probe executes: one line of JSON for each finding. */

import { writeSync } from 'node:fs';
import { tryBinary } from './try-binary.ts';

// Written at once, so that what was told before a crash arrives.
await tryBinary((finding) => writeSync(1, `${JSON.stringify(finding)}\n`));
