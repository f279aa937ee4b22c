/** A pool of 64 workers, beside Piscina: its start, its memory, and trivial functions on it. */

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { fetchPeers } from './peers.mjs';
import { besidePeers, quick, report } from './rounds.mjs';

const WORKERS = quick ? 4 : 64;
const script = fileURLToPath(new URL('pool-64-process.mjs', import.meta.url));
if (!quick) fetchPeers();

const found = { ours: [], piscina: [] };
const measure = (kind) => async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [script, kind, String(WORKERS)]);
  found[kind].push(JSON.parse(stdout));
  return 0;
};
const peers = quick ? {} : { piscina: measure('piscina') };
await besidePeers({ rounds: 5, samples: 1, warmUp: 0, ours: measure('ours'), peers });
const row = (key) => ({
  ours: found.ours.map((one) => one[key]),
  peer: quick ? undefined : found.piscina.map((one) => one[key]),
});
report({
  'pool/64-start': row('startMs'),
  'pool/64-memory': row('mb'),
  'pool/64-calls': row('us'),
});
