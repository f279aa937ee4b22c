/** `allstop doctor --servers`: checks the NATS client, then each server, then the cluster. */

import { load, loadClient } from '../../../nats/connection/connection.ts';
import { explainFailure } from '../../../nats/connection/connection-failure.ts';
import { Subjects } from '../../../nats/wire/subjects.ts';
import type { CommandResult } from '../../base/command.ts';
import { clusterOf, connectionOf } from '../../base/servers.ts';
import { binaryChecks } from '../binary-checks.ts';
import type { Check } from '../check.ts';
import { climb } from './ladder.ts';
import { tables } from './tables.ts';
import { type Topology, topologyOf } from './topology.ts';

/** Takes the place of the cluster's name in the name of doctor's inbox if --cluster is missing. */
const NO_CLUSTER = 'doctor';
/**
 * After this time the probe of the binary counts as failed, and the other checks go on. Longer than
 * the limit of the self-test itself: on a busy machine that takes seconds.
 */
const BINARY_MS = 15_000;

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
  // Without the client no server can be checked.
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

/** Whether the packages of the NATS client, which are optional peer dependencies, can be loaded. */
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

/** The first check of the binary that fails, or else the first check, which names the binary. */
async function binaryCheck(): Promise<Check> {
  const checks = await binaryChecks(false, BINARY_MS);
  return checks.find(({ ok }) => !ok) ?? (checks[0] as Check);
}
