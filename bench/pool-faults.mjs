// What the faults of one call do to the others, in allstop and in other pools with two workers each.
// Prints a Markdown table for each story.
//
//   node bench/pool-faults.mjs
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { fetchPeers } from './peers.mjs';

const script = fileURLToPath(new URL('pool-faults-process.mjs', import.meta.url));
const PATIENCE_MS = 60_000; // then the process is killed

const POOLS = [
  'allstop, threads',
  'allstop, processes',
  'Piscina',
  'tinypool',
  'workerpool',
  'poolifier',
];
const STORIES = {
  error: ['A function throws, beside 6 others', 'its caller is given', 'others with their results'],
  poison: [
    'A function ends its worker, before 20 others',
    'its caller is given',
    'others with their results',
  ],
  finished: [
    'Workers die 6 times during 3,000 functions',
    'innocent functions that have run to their end twice',
    'innocent calls without a result',
  ],
};

function play(story, pool) {
  const { stdout, status, signal } = spawnSync(process.execPath, [script, story, pool], {
    encoding: 'utf8',
    timeout: PATIENCE_MS,
    killSignal: 'SIGKILL',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    return JSON.parse(stdout);
  } catch {
    return [
      signal === null ? `the process ends with status ${status}` : 'the process does not end',
      '',
    ];
  }
}

fetchPeers();
for (const [story, head] of Object.entries(STORIES)) {
  console.log(`| ${head.join(' | ')} |\n| --- | --- | --- |`);
  for (const pool of POOLS) console.log(`| ${[pool, ...play(story, pool)].join(' | ')} |`);
  console.log();
}
