// Writes one line of JSON to standard output, for the test that runs the script. Synchronous, so
// that process.exit() loses no line, and that a worker does not need the main thread to write.
import { writeSync } from 'node:fs';

export function say(event, fields = {}) {
  writeSync(1, `${JSON.stringify({ event, ...fields })}\n`);
}
