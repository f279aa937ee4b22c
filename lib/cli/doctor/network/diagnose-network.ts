/** `allstop doctor --servers`: the client, the ladder of each server, then the cluster. */

import { load, loadClient } from '../../../cluster/nats/connection/connection.ts';
import { explainFailure } from '../../../cluster/nats/connection/connection-failure.ts';
import { Subjects } from '../../../cluster/nats/wire/subjects.ts';
import type { CommandResult } from '../../base/command.ts';
import { clusterOf, connectionOf } from '../../base/servers.ts';
import { binaryChecks } from '../binary-checks.ts';
import type { Check } from '../check.ts';
import { climb } from './ladder.ts';
import { tables } from './tables.ts';
import { type Topology, topologyOf } from './topology.ts';

/** Inboxes have a cluster's name in them; without a cluster it is anybody's. */
const NO_CLUSTER = 'doctor';
/** One that hangs is found, and the rest looked at. */
const BINARY_MS = 5_000;

/** @throws (rejects) UsageError */
export async function diagnoseNetwork(
  list: string,
  name: string | undefined,
): Promise<CommandResult> {
  const options = connectionOf(list);
  const cluster = name === undefined ? undefined : clusterOf(name);
  const inboxPrefix = new Subjects(cluster ?? NO_CLUSTER).inbox('doctor');
  const binary = await binaryCheck();
  const client = await clientCheck();
  // Without it nothing can be said of the servers.
  const servers = client.ok ? options.servers : [];
  const climbs = await Promise.all(servers.map((server) => climb(server, options, inboxPrefix)));
  const nats = climbs.find((each) => each.nats !== undefined)?.nats;
  let topology: Topology = { checks: [] };
  if (cluster !== undefined && nats !== undefined) topology = await topologyOf(nats, cluster);
  await Promise.all(climbs.map(async (each) => each.nats?.close()));
  const checks = [binary, client, ...climbs.flatMap((each) => each.checks), ...topology.checks];
  const ok = checks.every((check) => check.ok);
  const { report } = topology;
  return {
    text: tables(checks),
    json: { ok, checks, ...(report !== undefined && { report }) },
    exitCode: ok ? 0 : 1,
    lingers: true,
  };
}

/** Whether the NATS client is installed: optional peer dependencies, which not every user needs. */
async function clientCheck(): Promise<Check> {
  try {
    await loadClient();
    await load('@nats-io/jetstream', () => import('@nats-io/jetstream'));
    await load('@nats-io/kv', () => import('@nats-io/kv'));
    return { name: 'client', ok: true, detail: 'it loads' };
  } catch (error) {
    return { name: 'client', ok: false, ...explainFailure(error) };
  }
}

/** The first of its checks that fails, or the one that says which binary it is. */
async function binaryCheck(): Promise<Check> {
  const checks = await binaryChecks(false, BINARY_MS);
  return checks.find(({ ok }) => !ok) ?? (checks[0] as Check);
}
