/**
 * Checks the connection to one server step by step (the rungs of a ladder, see `RUNGS`), up to the
 * first that fails.
 */

import { isIP } from 'node:net';
import type { NatsConnection } from '@nats-io/transport-node';
import { ClientSockets } from '../../../nats/connection/client-sockets.ts';
import { clientOptions, loadClient } from '../../../nats/connection/connection.ts';
import {
  failureOf,
  failureOfLogin,
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
import type { Check } from '../check.ts';

// The time limits of one step. All steps and the waits of topology.ts together stay
// below 15 s.
const STEP_MS = 1_500;
const CONNECT_MS = 2_500;

const ANONYMOUS = 'without credentials';

/** `nats`: the open connection, if all steps succeeded. The caller closes it. */
export type Climb = { checks: Check[]; nats?: NatsConnection };

/** A step has failed: `rung`, because of `cause`. */
class Fall extends Error {
  readonly rung: Rung;

  constructor(rung: Rung, cause: unknown) {
    super(rung, { cause });
    this.rung = rung;
  }
}

export async function climb(
  server: string,
  options: NatsConnectionOptions,
  inboxPrefix: string,
): Promise<Climb> {
  const checks: Check[] = [];
  let greeted: ServerInfo = {};
  const step = async <T>(
    name: Rung,
    work: () => Promise<T>,
    detailOf: (found: T) => string,
  ): Promise<T> => {
    try {
      const found = await work();
      checks.push({ name, ok: true, target: server, detail: detailOf(found) });
      return found;
    } catch (error) {
      throw new Fall(name, error);
    }
  };
  const { host, port } = splitAddress(server) as { host: string; port: number };
  try {
    if (isIP(host) === 0) {
      await step(
        'dns',
        () => lookUp(host, STEP_MS),
        (found) => found.join(', '),
      );
    } else
      checks.push({
        name: 'dns',
        ok: true,
        target: server,
        detail: 'an IP address, no DNS needed',
      });
    const socket = await step(
      'tcp',
      () => dial(host, port, STEP_MS),
      () => 'connected',
    );
    const greeting = await step(
      'nats',
      () => readServerInfo(socket, STEP_MS),
      ({ version }) => `nats-server ${String(version)}`,
    );
    greeted = greeting;
    const nats = await connect({ ...options, servers: [server] }, inboxPrefix, greeting);
    checks.push(tlsCheck(server, options, greeting), authCheck(server, options));
    try {
      await step(
        'jetstream',
        () => {
          roomInMessage(nats); // throws, if messages are too short for a result
          const asked = new Refusals(nats).rule(askJetStream(nats, options, STEP_MS));
          return asked.catch((error: unknown) => {
            throw failureOfJetStream(error, nats, options);
          });
        },
        () => 'answers',
      );
    } catch (error) {
      await nats.close();
      throw error;
    }
    return { checks, nats };
  } catch (error) {
    if (!(error instanceof Fall)) throw error;
    const { rung } = error;
    const { cause, remedy } = failureOf(error.cause);
    // connect() does TLS and authentication in one call: if the second failed, the first succeeded.
    if (rung === 'auth') {
      checks.push(tlsCheck(server, options, greeted));
    }
    checks.push({ name: rung, ok: false, target: server, cause, remedy });
    return { checks };
  }
}

async function connect(
  options: NatsConnectionOptions,
  inboxPrefix: string,
  greeting: ServerInfo,
): Promise<NatsConnection> {
  const client = await loadClient();
  const settings = {
    ...(await clientOptions(client, options, inboxPrefix)),
    name: 'allstop doctor',
    timeout: CONNECT_MS,
  };
  try {
    return await new ClientSockets().connect(client.connect, settings);
  } catch (error) {
    const isTls = failureOf(error).rung === 'tls' || wantsCertificate(greeting, settings);
    const why = wantsCertificate(greeting, settings)
      ? noCertificate(error)
      : failureOfLogin(error, settings);
    throw new Fall(isTls ? 'tls' : 'auth', why);
  }
}

/** `unused` where it is not: for people, "ok" would mean that the connection is protected. */
function tlsCheck(server: string, options: NatsConnectionOptions, greeting: ServerInfo): Check {
  const isUsed = options.tls !== undefined || greeting.tls_required === true;
  const check = { name: 'tls', ok: true, target: server, detail: tlsOf(options, greeting) };
  return isUsed ? check : { ...check, unused: true };
}

function authCheck(server: string, options: NatsConnectionOptions): Check {
  const check = { name: 'auth', ok: true, target: server, detail: whoOf(options) };
  return check.detail === ANONYMOUS ? { ...check, unused: true } : check;
}

function tlsOf({ tls }: NatsConnectionOptions, { tls_required: isRequired }: ServerInfo): string {
  if (tls !== undefined) return 'encrypted';
  return isRequired === true ? 'encrypted, because the server requires it' : 'not used';
}

/** How doctor logs in, without the secret itself. */
function whoOf({ user, token, nkey, creds }: NatsConnectionOptions): string {
  if (user !== undefined) return `user ${user}`;
  if (token !== undefined) return 'by a token';
  if (nkey !== undefined) return 'by an nkey';
  return creds === undefined ? ANONYMOUS : 'by a credentials file';
}

// Collects the permission errors of a NATS connection. The server reports them as status events of
// the connection; the request itself then only times out.

export class Refusals {
  /** The first permission error. */
  first: Error | undefined;

  constructor(nats: NatsConnection) {
    void this.#watch(nats);
  }

  /** Resolves to the result of `work`. @throws (rejects) the permission error, if there was one */
  async rule<T>(work: Promise<T>): Promise<T> {
    try {
      const found = await work;
      if (this.first === undefined) return found;
    } catch (error) {
      throw this.first ?? error;
    }
    throw this.first;
  }

  async #watch(nats: NatsConnection): Promise<void> {
    for await (const status of nats.status()) {
      if (status.type === 'error') this.first ??= status.error;
    }
  }
}
