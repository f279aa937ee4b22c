/**
 * A stop at 100 ms while the main thread is busy for 500 ms: the time until a native thread that
 * holds `coord.signal`, and one that holds a plain AbortSignal, has seen it.
 */

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { quick, report } from './rounds.mjs';

const SAMPLES = quick ? 1 : 15;
const file = fileURLToPath(new URL('./signal-samples.mjs', import.meta.url));

async function samplesOf(program, flags) {
  const args = [...flags, file, String(SAMPLES)];
  const { stdout } = await promisify(execFile)(program, args, { timeout: 120_000 });
  return JSON.parse(stdout);
}

const { coordinator, plain } = await samplesOf(process.execPath, []);
report({ 'stop/signal': { ours: coordinator, peer: plain } });
