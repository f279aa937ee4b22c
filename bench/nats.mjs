/**
 * The cluster on NATS: throughput and latency of trivial functions on four workers, and the time
 * until a stop has reached eight other processes. Compared with BullMQ on Redis and with plain NATS
 * (nats-peers/bare.mjs, nats-peers/listener.mjs).
 */

import { fileURLToPath } from 'node:url';
import { connect } from '@nats-io/transport-node';
import { ClusterCoordinator } from '../dist/cluster/index.js';
import { NatsStrategy } from '../dist/nats/index.js';
import { fetchPeers } from './peers.mjs';
import { alone, inTurn, quick, report, sleep, usSince, wants } from './rounds.mjs';
import { start, startNats, startRedis, worker } from './servers.mjs';

const WORKERS = 4;
const WAVE = 2_000;
const file = (name) => fileURLToPath(new URL(name, import.meta.url));
const module = new URL('nats-tasks.mjs', import.meta.url);
const servers = await startNats();

async function startCluster(name, workers) {
  for (let index = 0; index < workers; index++) await worker(fileURLToPath(module), servers, name);
  const strategy = new NatsStrategy({ module, servers, cluster: name, minWorkers: workers });
  const cluster = new ClusterCoordinator(strategy);
  await cluster.ready();
  return cluster;
}

const pairs = Array.from({ length: WAVE }, (_, index) => [index, 1]);
const check = (values) => {
  for (const [index, value] of values.entries()) {
    if (value !== index + 1) throw new Error(`${index} + 1 is not ${value}`);
  }
};

async function startPeer(name, address) {
  const { prepare } = await import(`./nats-peers/${name}.mjs`);
  const pool = await prepare(address);
  for (let index = 0; index < WORKERS; index++) {
    await start(process.execPath, [file('nats-peers/worker.mjs'), name, address], /^ready/);
  }
  return pool;
}

const cluster = await startCluster('bench', WORKERS);

async function ourWave() {
  const began = process.hrtime.bigint();
  const remotes = await Promise.all(pairs.map((pair) => cluster.schedule('add', pair)));
  const values = await Promise.all(remotes.map((remote) => remote.fetch()));
  const us = usSince(began) / WAVE;
  check(values);
  return us;
}

async function ourRoundTrip() {
  const began = process.hrtime.bigint();
  await (await cluster.schedule('add', [1, 2])).fetch();
  return usSince(began);
}

const rows = {};

async function besidePeer(peer, pool) {
  const runAll = pool.runAll ?? ((all) => Promise.all(all.map(([a, b]) => pool.run(a, b))));
  rows[`nats/calls-${peer}`] = await inTurn({
    rounds: 7,
    samples: 3,
    ours: ourWave,
    async peer() {
      const began = process.hrtime.bigint();
      const values = await runAll(pairs);
      const us = usSince(began) / WAVE;
      check(values);
      return us;
    },
  });
  rows[`nats/round-trip-${peer}`] = await inTurn({
    rounds: 11,
    samples: 201,
    ours: ourRoundTrip,
    async peer() {
      const began = process.hrtime.bigint();
      await pool.run(1, 2);
      return usSince(began);
    },
  });
  await pool.close();
}

/** The time from a stop request in this process until the last of eight other processes has it. */
async function besidePublish() {
  const OTHERS = 8;
  const name = 'stops';
  for (let index = 0; index < OTHERS; index++) {
    await worker(fileURLToPath(module), servers, name);
    await start(process.execPath, [file('nats-peers/listener.mjs'), servers], /^ready/);
  }
  const nats = await connect({ servers });
  const heard = [];
  let onAll;
  nats.subscribe('heard', {
    callback(_, message) {
      heard.push(BigInt(message.string()));
      if (heard.length === OTHERS) onAll();
    },
  });
  /** In microseconds. */
  const lastAfter = (began, times) =>
    Math.max(...times.map((time) => Number(BigInt.asIntN(64, time - began)) / 1_000));
  const strategy = () => new NatsStrategy({ module, servers, cluster: name, minWorkers: OTHERS });
  rows['nats/stop'] = await inTurn({
    rounds: 7,
    samples: 5,
    warmUp: 2,
    async ours() {
      const stopping = new ClusterCoordinator(strategy());
      await stopping.ready();
      const remotes = [];
      for (let index = 0; index < OTHERS; index++) {
        remotes.push(await stopping.schedule('untilStopped'));
      }
      while (stopping.workers.some(({ running }) => running === 0)) await sleep(5);
      await sleep(50);
      const began = process.hrtime.bigint();
      stopping.coordinator.requestStop();
      const us = lastAfter(began, await Promise.all(remotes.map((remote) => remote.fetch())));
      await stopping.close();
      return us;
    },
    async peer() {
      heard.length = 0;
      const all = new Promise((resolve) => {
        onAll = resolve;
      });
      const began = process.hrtime.bigint();
      nats.publish('go', '');
      await all;
      return lastAfter(began, heard);
    },
  });
  await nats.close();
}

const wantsAny = (peer) => wants(`nats/calls-${peer}`) || wants(`nats/round-trip-${peer}`);

if (quick) {
  rows['nats/calls-jetstream'] = await alone({ rounds: 2, samples: 3, ours: ourWave });
} else {
  fetchPeers();
  if (wantsAny('jetstream')) await besidePeer('jetstream', await startPeer('bare', servers));
  const redis = wantsAny('bullmq') ? await startRedis() : undefined;
  if (redis !== undefined) await besidePeer('bullmq', await startPeer('bullmq', redis));
}
await cluster.close();
if (!quick && wants('nats/stop')) await besidePublish();
report(rows);
process.exit();
