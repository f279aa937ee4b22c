// Reads the log of a process that ran under a sanitizer, and fails if it reports anything
// of ours: any error or data race, and leaks of what an addon of ours has allocated
// itself. (What Node or V8 allocate on our behalf is theirs to free.)
import { readFileSync } from 'node:fs';

const log = readFileSync(process.argv[2], 'utf8');
const reports = log.split(/\n\s*\n/);

const found = reports.filter((report) => {
  if (/ERROR: AddressSanitizer|runtime error:/.test(report)) return true;
  if (/WARNING: ThreadSanitizer/.test(report)) return /allstop|test_addon/.test(report);
  if (!/^(?:Direct|Indirect) leak of/m.test(report)) return false;
  // The frame that called the allocator: the first that is not the sanitizer's own.
  const frames = report.split('\n').filter((line) => /^\s+#\d/.test(line));
  const caller = frames.find(
    (frame) => !/libsanitizer|operator new|\bin (?:m|c|re)alloc/.test(frame),
  );
  return /allstop|test_addon|native\//.test(caller ?? '');
});

for (const report of found) console.error(`${report}\n`);
process.exitCode = found.length === 0 ? 0 : 1;
