// One line of JSON for the test that runs the script. Written at once and from any
// thread: `process.exit()` loses none, and a worker needs no main thread for it.
import { writeSync } from 'node:fs';

export function say(event, fields = {}) {
  writeSync(1, `${JSON.stringify({ event, ...fields })}\n`);
}
