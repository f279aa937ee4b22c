/** `allstop doctor --servers`: checks the NATS client, then each server, then the cluster. */

import { fitTerminal } from '../../../coordinator/words.ts';
import { load, loadClient } from '../../../nats/connection/connection.ts';
import { explainFailure, RUNGS } from '../../../nats/connection/connection-failure.ts';
import { Subjects } from '../../../nats/wire/subjects.ts';
import { type CommandResult, tableOf } from '../../base/command.ts';
import { clusterOf, connectionOf } from '../../base/servers.ts';
import { binaryChecks } from '../binary-checks.ts';
import { type Check, paint } from '../check.ts';
import { climb } from './ladder.ts';
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
  domain: string | undefined,
): Promise<CommandResult> {
  const options = connectionOf(list, domain);
  const cluster = name === undefined ? undefined : clusterOf(name);
  const inboxPrefix = new Subjects(cluster ?? NO_CLUSTER).inbox('doctor');
  const binary = await binaryCheck();
  const client = await clientCheck();
  // Without the client no server can be checked.
  const servers = client.ok ? [...new Set(options.servers)] : [];
  const climbs = await Promise.all(servers.map((server) => climb(server, options, inboxPrefix)));
  const nats = climbs.find((each) => each.nats !== undefined)?.nats;
  let topology: Topology = { checks: [] };
  if (cluster !== undefined && nats !== undefined)
    topology = await topologyOf(nats, cluster, options);
  await Promise.all(climbs.map(async (each) => each.nats?.close()));
  const checks = [binary, client, ...climbs.flatMap((each) => each.checks), ...topology.checks];
  const ok = checks.every((check) => check.ok);
  const { report, work } = topology;
  return {
    text: tables(checks),
    json: {
      ok,
      checks,
      ...(report !== undefined && { report }),
      ...(work !== undefined && { work }),
    },
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

// * Prints the checks of `allstop doctor --servers` as tables, with the problems and remedies below.

const NONE = '-';
/** TLS, or credentials, that neither side asked for: nothing was checked, and nothing protects. */
const NOT_USED = 'none';
/** The checks of this machine, which belong to no server. */
const HERE = ['binary', 'client'];

const isRung = (name: string): boolean => RUNGS.some((rung) => rung === name);
const mark = ({ ok, unused }: Check): string =>
  unused === true ? NOT_USED : paint(ok ? 'green' : 'red', ok ? 'ok' : 'NOT OK');

function serversOf(checks: Check[]): string | undefined {
  const rungs = checks.filter(({ name }) => isRung(name));
  const servers = [...new Set(rungs.map(({ target }) => target ?? ''))];
  if (servers.length === 0) return undefined;
  const rows = servers.map((server) => {
    const own = rungs.filter(({ target }) => target === server);
    const cells = RUNGS.map((rung) => own.find(({ name }) => name === rung));
    return [server, ...cells.map((check) => (check === undefined ? NONE : mark(check)))];
  });
  return tableOf(['server', ...RUNGS], rows);
}

function othersOf(checks: Check[]): string | undefined {
  const rows = checks
    .filter(({ name }) => !isRung(name) && !HERE.includes(name))
    .map((check) => [check.name, check.target ?? NONE, mark(check), check.detail ?? NONE]);
  return rows.length === 0 ? undefined : tableOf(['cluster', '', '', ''], rows);
}

function problemsOf(checks: Check[]): string {
  const problems = checks.filter(({ ok }) => !ok);
  if (problems.length === 0) return 'No problem found.';
  const texts = problems.map(
    ({ name, target, cause, remedy }, at) =>
      `${at + 1}. ${[name, target].join(' ').trimEnd()}\n   Cause: ${cause}\n   What to do: ${remedy}`,
  );
  return ['Problems:', ...texts].join('\n');
}

/**
 * Replaces control characters: names and errors come from other machines, and could steer a
 * terminal.
 */
function plain(check: Check): Check {
  const entries = Object.entries(check).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.replaceAll(/\p{Cc}+/gu, ' ') : value,
  ]);
  return Object.fromEntries(entries) as Check;
}

/** The whole text: this machine, the servers, the cluster, and last the problems with remedies. */
export function tables(found: Check[]): string {
  const checks = found.map(plain);
  const here = checks
    .filter(({ name }) => HERE.includes(name))
    .map((check) => `${check.name}  ${mark(check)}  ${check.target ?? ''}`.trimEnd());
  const parts = [here.join('\n'), serversOf(checks), othersOf(checks), problemsOf(checks)];
  const text = parts.filter((part) => part !== undefined).join('\n\n');
  return `${fitTerminal(text.split('\n'))}\n`;
}
