/** `allstop doctor --servers`: checks the NATS client, then each server, then the cluster. */

import { isIP } from 'node:net';
import type { NatsConnection } from '@nats-io/transport-node';
import { fitTerminal } from '../../../coordinator/words.ts';
import { ClientSockets } from '../../../nats/connection/client-sockets.ts';
import { clientOptions, load, loadClient } from '../../../nats/connection/connection.ts';
import {
  explainFailure,
  failureOf,
  failureOfLogin,
  RUNGS,
  type Rung,
} from '../../../nats/connection/connection-failure.ts';
import type { NatsConnectionOptions } from '../../../nats/connection/connection-options.ts';
import { askJetStream, failureOfJetStream } from '../../../nats/connection/jetstream.ts';
import {
  dial,
  lookUp,
  noCertificate,
  readServerInfo,
  type ServerInfo,
  splitAddress,
  wantsCertificate,
} from '../../../nats/connection/server-info.ts';
import { roomInMessage } from '../../../nats/results/objects.ts';
import { Subjects } from '../../../nats/wire/subjects.ts';
import { type CommandResult, tableOf } from '../../base/command.ts';
import { clusterOf, connectionOf } from '../../base/servers.ts';
import { binaryChecks } from '../binary-checks.ts';
import { type Check, paint, problem } from '../check.ts';
import { Refusals, type Topology, topologyOf } from './topology.ts';

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
  const isAsked = cluster !== undefined && nats !== undefined;
  const topology: Topology = isAsked ? await topologyOf(nats, cluster, options) : { checks: [] };
  await Promise.all(climbs.map(async (each) => each.nats?.close()));
  const checks = [binary, client, ...climbs.flatMap((each) => each.checks), ...topology.checks];
  const ok = checks.every((check) => check.ok);
  const json = { ok, ...topology, checks };
  return { text: tables(checks), json, exitCode: ok ? 0 : 1, lingers: true };
}

/** Whether the packages of the NATS client, which are optional peer dependencies, can be loaded. */
async function clientCheck(): Promise<Check> {
  try {
    await loadClient();
    await load('@nats-io/jetstream', () => import('@nats-io/jetstream'));
    await load('@nats-io/kv', () => import('@nats-io/kv'));
    return { name: 'client', ok: true, detail: 'it loads' };
  } catch (error) {
    const { cause, remedy } = explainFailure(error);
    return problem({ name: 'client' }, cause, remedy);
  }
}

/** The first check of the binary that fails, or else the first check, which names the binary. */
async function binaryCheck(): Promise<Check> {
  const checks = await binaryChecks(false, BINARY_MS);
  return checks.find(({ ok }) => !ok) ?? (checks[0] as Check);
}

// Checks the connection to one server step by step (the rungs of a ladder, see `RUNGS`), up to the
// first that fails.

// The time limits of one step. All steps and the waits of topology.ts together stay below 15 s.
const STEP_MS = 1_500;
const CONNECT_MS = 2_500;

/** `nats`: the open connection, if all steps succeeded. The caller closes it. */
type Climb = { checks: Check[]; nats?: NatsConnection };

async function climb(
  server: string,
  options: NatsConnectionOptions,
  inboxPrefix: string,
): Promise<Climb> {
  const checks: Check[] = [];
  let rung: Rung = 'dns';
  const passed = (check: Pick<Check, 'detail' | 'unused'>): void =>
    void checks.push({ name: rung, ok: true, target: server, ...check });
  let nats: NatsConnection | undefined;
  try {
    const { host, port } = splitAddress(server) as { host: string; port: number };
    const addresses = isIP(host) === 0 ? await lookUp(host, STEP_MS) : [NO_DNS];
    passed({ detail: addresses.join(', ') });
    rung = 'tcp';
    const socket = await dial(host, port, STEP_MS);
    passed({ detail: 'connected' });
    rung = 'nats';
    const greeting = await readServerInfo(socket, STEP_MS);
    passed({ detail: `nats-server ${String(greeting.version)}` });
    rung = 'tls';
    const client = await loadClient();
    const settings = {
      ...(await clientOptions(client, { ...options, servers: [server] }, inboxPrefix)),
      name: 'allstop doctor',
      timeout: CONNECT_MS,
    };
    // The client does TLS and authentication in one call: if the second failed, the first succeeded.
    let refusal: unknown;
    try {
      nats = await new ClientSockets().connect(client.connect, settings);
    } catch (error) {
      if (wantsCertificate(greeting, settings)) throw noCertificate(error);
      refusal = failureOfLogin(error, settings);
      if (failureOf(error).rung === 'tls') throw refusal;
    }
    passed(tlsOf(options, greeting));
    rung = 'auth';
    if (nats === undefined) throw refusal;
    passed(loginOf(options));
    rung = 'jetstream';
    await checkJetStream(nats, options);
    passed({ detail: 'answers' });
    return { checks, nats };
  } catch (error) {
    await nats?.close();
    const { cause, remedy } = failureOf(error);
    checks.push(problem({ name: rung, target: server }, cause, remedy));
    return { checks };
  }
}

const NO_DNS = 'an IP address, no DNS needed';

async function checkJetStream(nats: NatsConnection, options: NatsConnectionOptions): Promise<void> {
  roomInMessage(nats); // throws, if messages are too short for a result
  try {
    await new Refusals(nats).rule(askJetStream(nats, options, STEP_MS));
  } catch (error) {
    throw failureOfJetStream(error, nats, options);
  }
}

/** `unused` where it is not: for people, "ok" would mean that the connection is protected. */
function tlsOf({ tls }: NatsConnectionOptions, { tls_required: isRequired }: ServerInfo) {
  if (tls !== undefined) return { detail: 'encrypted' };
  if (isRequired === true) return { detail: 'encrypted, because the server requires it' };
  return { detail: 'not used', unused: true };
}

/** How doctor logs in, without the secret itself. */
function loginOf({ user, token, nkey, creds }: NatsConnectionOptions) {
  if (user !== undefined) return { detail: `user ${user}` };
  if (token !== undefined) return { detail: 'by a token' };
  if (nkey !== undefined) return { detail: 'by an nkey' };
  if (creds !== undefined) return { detail: 'by a credentials file' };
  return { detail: 'without credentials', unused: true };
}

// Prints the checks of `allstop doctor --servers` as tables, with the problems and remedies below.

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
function tables(found: Check[]): string {
  const checks = found.map(plain);
  const here = checks
    .filter(({ name }) => HERE.includes(name))
    .map((check) => `${check.name}  ${mark(check)}  ${check.target ?? ''}`.trimEnd());
  const parts = [here.join('\n'), serversOf(checks), othersOf(checks), problemsOf(checks)];
  const text = parts.filter((part) => part !== undefined).join('\n\n');
  return `${fitTerminal(text.split('\n'))}\n`;
}
