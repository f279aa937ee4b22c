/**
 * Large values over slow links to the NATS server, beside the time that the bytes alone take: a
 * result through a worker's uplink, and arguments through the coordinator's.
 */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ClusterCoordinator } from '../dist/cluster/index.js';
import { NatsStrategy } from '../dist/nats/index.js';
import { openLink } from './link.mjs';
import { quick, report, wants } from './rounds.mjs';
import { startNats, worker } from './servers.mjs';

const module = new URL('nats-tasks.mjs', import.meta.url);
const path = fileURLToPath(module);
const servers = await startNats();
const rows = {};

async function open(name, { through = servers, minWorkers = 1 } = {}) {
  const strategy = new NatsStrategy({ module, servers: through, cluster: name, minWorkers });
  const cluster = new ClusterCoordinator(strategy);
  await cluster.ready();
  return cluster;
}

/** The most memory that the process has had, in megabytes. Linux only. */
function peakMb(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(/^VmHWM:\s*(\d+) kB/m.exec(status)?.[1]) / 1_024;
}

async function resultThroughUplink() {
  const [bytes, rate] = quick ? [200_000, 1_000_000] : [10_000_000, 204_800];
  const link = await openLink(servers, rate);
  const { pid } = await worker(path, link.address, 'slow-result');
  const cluster = await open('slow-result');
  await cluster.run('bytes', [1]);
  const [sentBefore, mbBefore] = [link.bytesUp, peakMb(pid)];
  const start = performance.now();
  const { byteLength } = await cluster.run('bytes', [bytes]);
  const seconds = (performance.now() - start) / 1_000;
  if (byteLength !== bytes) throw new Error(`${byteLength} bytes of ${bytes}`);
  const mb = bytes / 1e6;
  rows['nats/slow-result'] = { ours: [seconds], peer: [bytes / rate] };
  rows['nats/slow-result-sent'] = { ours: [(link.bytesUp - sentBefore) / 1e6], peer: [mb] };
  rows['nats/slow-result-memory'] = { ours: [peakMb(pid) - mbBefore], peer: [mb] };
  await cluster.close();
}

async function argumentsThroughUplink() {
  const [bytes, calls, rate] = quick ? [50_000, 4, 2_000_000] : [5_000_000, 24, 2_000_000];
  const link = await openLink(servers, rate);
  for (let index = 0; index < 4; index++) await worker(path, servers, 'slow-arguments');
  const cluster = await open('slow-arguments', { through: link.address, minWorkers: 4 });
  const start = performance.now();
  const sizes = await Promise.all(
    Array.from({ length: calls }, () => cluster.run('sizeOf', [new Uint8Array(bytes)])),
  );
  const seconds = (performance.now() - start) / 1_000;
  if (sizes.some((size) => size !== bytes)) throw new Error('A size is wrong');
  rows['nats/slow-arguments'] = { ours: [seconds], peer: [(calls * bytes) / rate] };
  await cluster.close();
}

if (['', '-sent', '-memory'].some((detail) => wants(`nats/slow-result${detail}`))) {
  await resultThroughUplink();
}
if (wants('nats/slow-arguments')) await argumentsThroughUplink();
report(rows);
process.exit();
