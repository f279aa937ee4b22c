// Reads the log of a process that ran under a sanitizer, and fails if it reports a fault of ours:
// any memory error, a data race in our code, or a leak of memory that one of our addons allocated
// itself. (Memory that Node or V8 allocate for an addon has to be freed by Node or V8.)
import { readFileSync } from 'node:fs';

const log = readFileSync(process.argv[2], 'utf8');
const reports = log.split(/\n\s*\n/);

const found = reports.filter((report) => {
  if (/ERROR: AddressSanitizer|runtime error:/.test(report)) return true;
  if (/WARNING: ThreadSanitizer/.test(report)) return /allstop|test_addon/.test(report);
  if (!/^(?:Direct|Indirect) leak of/m.test(report)) return false;
  // The function that called the allocator: the first frame outside of the sanitizer.
  const frames = report.split('\n').filter((line) => /^\s+#\d/.test(line));
  const caller = frames.find(
    (frame) => !/libsanitizer|operator new|\bin (?:m|c|re)alloc/.test(frame),
  );
  return /allstop|test_addon|native\//.test(caller ?? '');
});

for (const report of found) console.error(`${report}\n`);
process.exitCode = found.length === 0 ? 0 : 1;
