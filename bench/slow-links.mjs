/**
 * Large values through slow links, over NATS: a result through a worker's uplink, and arguments
 * through the coordinator's. Compared with the arithmetic: how long the bytes alone take. Each
 * link is a process of its own (slow-links/link.mjs), so that its memory does not count.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { ClusterCoordinator } from '../dist/cluster/index.js';
import { NatsStrategy } from '../dist/cluster/nats/index.js';
import { quick, report } from './rounds.mjs';
import { startNats, worker } from './servers.mjs';

const MB = 1_000_000;
const KIB = 1_024;
const RESULT = { bytes: quick ? MB / 10 : 10 * MB, uplink: 200 * KIB };
const ARGUMENTS = { bytes: quick ? MB / 20 : 5 * MB, count: 24, workers: 4, uplink: 2 * MB };
/** Calls, so that code which is compiled does not count as memory. */
const WARM_UP = 20;

const module = new URL('slow-links/tasks.mjs', import.meta.url);
const servers = await startNats();
const rows = [];

/** A link to the server, and what it has carried since `mark`. */
async function startLink(bytesPerSecond) {
  const file = fileURLToPath(new URL('slow-links/link.mjs', import.meta.url));
  const child = spawn(process.execPath, [file, servers, String(bytesPerSecond)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout);
  const [address] = await once(lines, 'line');
  const carried = async () => {
    child.stdin.write('\n');
    const [line] = await once(lines, 'line');
    return JSON.parse(line);
  };
  return { address, carried, close: () => child.stdin.end() };
}

/** In megabytes; undefined where there is no /proc. */
function memory(pid, name) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)[1]) * KIB) / MB;
  } catch {
    return undefined;
  }
}

/** By how much the memory of each process grows while `work` runs, at most. */
async function growthOf(pids, work) {
  globalThis.gc?.();
  const before = pids.map((pid) => memory(pid, 'VmRSS'));
  if (before.every((mb) => mb !== undefined)) {
    for (const pid of pids) writeFileSync(`/proc/${pid}/clear_refs`, '5'); // sets VmHWM to VmRSS
  }
  await work();
  return pids.map((pid, at) => memory(pid, 'VmHWM') - before[at]);
}

function add(what, payload, rate, { seconds, sent, connections }, goal) {
  rows.push(
    {
      what,
      peerName: 'the bytes alone',
      unit: 's',
      ours: [seconds],
      peer: [payload / rate],
      goal: { ratio: goal },
    },
    {
      what: `${what}: bytes on the wire`,
      peerName: 'the payload',
      unit: 'MB',
      ours: [sent / MB],
      peer: [payload / MB],
      goal: { ratio: 1.15 },
    },
    { what: `${what}: connections`, unit: '', ours: [connections], goal: { atMost: 1 } },
  );
}

async function slowResult() {
  const { bytes, uplink } = RESULT;
  const what = `cluster, NATS: a result of ${bytes / MB} MB, the worker's uplink ${uplink / KIB} KB/s`;
  const link = await startLink(uplink);
  const { pid } = await worker(fileURLToPath(module), link.address, 'result');
  const cluster = new ClusterCoordinator(
    new NatsStrategy({ module, servers, cluster: 'result', minWorkers: 1 }),
  );
  await cluster.ready();
  for (let call = 0; call < WARM_UP; call++) await cluster.run('bytesOf', [KIB]);
  const before = await link.carried();
  let seconds;
  const growth = await growthOf([process.pid, pid], async () => {
    const began = performance.now();
    const { byteLength } = await cluster.run('bytesOf', [bytes]);
    seconds = (performance.now() - began) / 1_000;
    if (byteLength !== bytes) throw new Error(`${byteLength} bytes`);
  });
  const after = await link.carried();
  const sent = after.bytes - before.bytes;
  add(what, bytes, uplink, { seconds, sent, connections: after.connections }, 1.2);
  for (const [at, name] of ['the coordinator', 'the worker'].entries()) {
    if (Number.isNaN(growth[at])) continue;
    rows.push({
      what: `${what}: memory by which ${name} grows`,
      peerName: 'the payload',
      unit: 'MB',
      ours: [growth[at]],
      peer: [bytes / MB],
      goal: { ratio: 2 },
    });
  }
  await cluster.close();
  link.close();
}

async function slowArguments() {
  const { bytes, count, workers, uplink } = ARGUMENTS;
  const what = `cluster, NATS: ${count} arguments of ${bytes / MB} MB, ${workers} workers, the coordinator's uplink ${uplink / MB} MB/s`;
  const link = await startLink(uplink);
  for (let at = 0; at < workers; at++) await worker(fileURLToPath(module), servers, 'arguments');
  const cluster = new ClusterCoordinator(
    new NatsStrategy({ module, servers: link.address, cluster: 'arguments', minWorkers: workers }),
  );
  await cluster.ready();
  const before = await link.carried();
  const began = performance.now();
  const lengths = await Promise.all(
    Array.from({ length: count }, () => cluster.run('lengthOf', [new Uint8Array(bytes)])),
  );
  const seconds = (performance.now() - began) / 1_000;
  if (lengths.some((length) => length !== bytes)) throw new Error(lengths.join());
  const after = await link.carried();
  const sent = after.bytes - before.bytes;
  add(what, bytes * count, uplink, { seconds, sent, connections: after.connections }, 1.25);
  await cluster.close();
  link.close();
}

await slowResult();
await slowArguments();
report(rows);
process.exit();
