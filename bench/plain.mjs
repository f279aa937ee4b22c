/**
 * What a user of a pool feels first, each pool in processes of its own (plain-process.mjs), one after
 * the other.
 */

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { fetchPeers } from './peers.mjs';
import { besidePeers, quick, report, wants } from './rounds.mjs';

const script = fileURLToPath(new URL('plain-process.mjs', import.meta.url));
const POOLS = ['Piscina', 'tinypool', 'workerpool', 'poolifier'];
/** By row: the story, and its peers. */
const STORIES = {
  'plain/round-trip': ['round-trip', [...POOLS, 'bare']],
  'plain/first': ['first', POOLS],
  'plain/in-flight': ['in-flight', POOLS],
  'plain/map': ['map', POOLS],
  'plain/await': ['await', ['Piscina', 'tinypool']],
  'plain/await-here': ['await-here', ['before']],
  'plain/objects-argument': ['objects-argument', ['Piscina', 'tinypool']],
  'plain/objects-result': ['objects-result', ['Piscina', 'tinypool']],
  'plain/move': ['move', ['Piscina']],
  'plain/shared': ['shared', ['Piscina', 'tinypool']],
  'child/cost': ['child-0', ['any']],
  'child/cost-300': ['child-300', ['any']],
};
/** The row of the peer that is no pool. */
const BARE = 'plain/round-trip-bare';

const measure = (subject, story) => async () => {
  const args = [script, subject, story, ...(quick ? ['quick'] : [])];
  return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout);
};

if (!quick) fetchPeers();
const rows = {};
for (const [name, [story, peers]] of Object.entries(STORIES)) {
  if (!wants(name) && !(name === 'plain/round-trip' && wants(BARE))) continue;
  const all = await besidePeers({
    rounds: 5,
    samples: 1,
    warmUp: 0,
    ours: measure('allstop', story),
    peers: Object.fromEntries(quick ? [] : peers.map((peer) => [peer, measure(peer, story)])),
  });
  const { bare, ...others } = all.peers;
  const [only, ...more] = Object.values(others);
  const isOnly = more.length === 0;
  rows[name] = isOnly ? { ours: all.ours, peer: only } : { ours: all.ours, peers: others };
  if (name === 'plain/round-trip') rows[BARE] = { ours: all.ours, peer: bare };
}
report(rows);
