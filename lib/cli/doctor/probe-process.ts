/** Runs in the child process of a probe and prints one line of JSON for each finding. */

import { writeSync } from 'node:fs';
import { tryBinary } from './try-binary.ts';

// Synchronous, so that findings from before a crash arrive.
await tryBinary((finding) => writeSync(1, `${JSON.stringify(finding)}\n`));
