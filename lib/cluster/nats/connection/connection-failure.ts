/** Why there is no connection, and what to do: for people. */

import { messageOf } from '../../../base/thrown-value.ts';

export type Explanation = { cause: string; remedy: string };

type Failure = { name?: unknown; code?: unknown; message?: unknown; cause?: unknown };

/** The error and what has caused it, outermost first. */
function chainOf(error: unknown): Failure[] {
  const chain: Failure[] = [];
  for (let at: unknown = error; typeof at === 'object' && at !== null; at = (at as Failure).cause) {
    if (chain.length === 8) break;
    chain.push(at as Failure);
  }
  return chain;
}

/** The steps of a connection to a server, each of which needs the one before. */
export const RUNGS = ['dns', 'tcp', 'nats', 'tls', 'auth', 'jetstream'] as const;
export type Rung = (typeof RUNGS)[number];

type Rule = { rung?: Rung; is: (failure: Failure) => boolean; cause: string; remedy: string };

const hasCode =
  (...codes: string[]) =>
  ({ code }: Failure): boolean =>
    typeof code === 'string' && codes.includes(code);
const says =
  (pattern: RegExp) =>
  ({ name, message }: Failure): boolean =>
    pattern.test(`${String(name)}: ${String(message)}`);

/** The first that fits, of the outermost error that one fits. */
const RULES: readonly Rule[] = [
  {
    is: ({ name, message }) =>
      name === 'UnavailableError' && /needs the package/.test(String(message)),
    cause: 'the client for NATS cannot be loaded',
    remedy: 'npm install @nats-io/transport-node @nats-io/jetstream @nats-io/kv',
  },
  {
    rung: 'dns',
    is: hasCode('ENOTFOUND', 'EAI_AGAIN'),
    cause: 'the name of the server is unknown (DNS)',
    remedy: 'check the name in `servers`, and the DNS of this machine',
  },
  {
    rung: 'tcp',
    is: hasCode('ECONNREFUSED'),
    cause: 'the host refuses connections at that port: no server listens there',
    remedy: 'start nats-server there, or correct the port in `servers`',
  },
  {
    rung: 'tcp',
    is: hasCode('EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'),
    cause: 'there is no way to the host of the server, or it is off, or a firewall drops packets',
    remedy: 'check the address in `servers`, the host, the network and firewalls',
  },
  {
    rung: 'auth',
    is: says(/AuthorizationError|authorization violation|user authentication|AuthenticationError/i),
    cause: 'the server does not accept the credentials',
    remedy: 'check user and password, token or nkey; and which of them the server wants',
  },
  {
    rung: 'auth',
    is: says(/nkeys:|unable to parse credentials|NKeysError/i),
    cause: 'the nkey or the credentials file is none',
    remedy: 'give the seed of an nkey (SU…) as `nkey`, or what is in a .creds file as `creds`',
  },
  {
    rung: 'tls',
    is: says(/tls_verify|certificate required|handshake failure|bad certificate/i),
    cause: 'the server wants a certificate of the client',
    remedy: 'give one that it trusts as `tls.certFile` and `tls.keyFile`',
  },
  {
    rung: 'tls',
    is: hasCode(
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'UNABLE_TO_GET_ISSUER_CERT',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'CERT_HAS_EXPIRED',
      'CERT_NOT_YET_VALID',
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ),
    cause: 'the certificate of the server is not trusted',
    remedy:
      'give the authority that has signed it as `tls.caFile` (ALLSTOP_NATS_CA_FILE); check its names and dates',
  },
  {
    rung: 'tls',
    is: says(/does not support 'tls'|server does not support TLS/i),
    cause: 'the server has no TLS, and it was asked for',
    remedy: 'set up TLS in the server, or leave `tls` and tls:// out',
  },
  {
    rung: 'tls',
    is: ({ code, message }) =>
      /^(?:ERR_SSL_|ERR_TLS_|ERR_OSSL_)/.test(String(code)) ||
      String(message).endsWith(" doesn't exist"),
    cause: 'TLS cannot be begun',
    remedy: 'check the files of `tls`, and what TLS the server has',
  },
  {
    rung: 'jetstream',
    is: says(/JetStreamNotEnabled|jetstream.*not enabled|jetstream is not enabled/i),
    cause: 'the server has no JetStream, or not for this account',
    remedy: 'start nats-server with `--jetstream`, or enable it for the account',
  },
  {
    rung: 'nats',
    is: says(/unexpected response|invalid.*info|parse error|ProtocolError/i),
    cause: 'what answers there is no NATS server',
    remedy: 'check the port in `servers`: clients use 4222',
  },
  {
    rung: 'nats',
    is: says(/without a word|undefined error/),
    cause:
      'what listens there ends the connection at once: no NATS server, or one that begins with TLS',
    remedy:
      'check the port in `servers`; for a server with `handshake_first` give tls.handshakeFirst',
  },
  {
    is: says(/permissions violation|PermissionViolation/i),
    cause: 'the server does not permit a subject that is needed',
    remedy: 'give the role the permissions that docs/operations.md lists',
  },
  {
    rung: 'jetstream',
    is: says(/JetStreamApiError.*(replicas|no suitable peers|insufficient)/i),
    cause: 'JetStream has not enough servers, or room, for what it is to keep',
    remedy: 'start more servers, or set `replicas` to as many as there are; check its limits',
  },
  {
    rung: 'jetstream',
    is: says(/JetStream is silent/),
    cause: 'the server answers, but its JetStream does not: it has no leader now, or hangs',
    remedy: 'of several servers a majority has to run, and to reach each other; see their logs',
  },
  {
    rung: 'jetstream',
    is: says(/no responders|NoResponders/i),
    cause: 'JetStream does not answer: it is off, or has no leader now',
    remedy: 'start nats-server with `--jetstream`; with several servers a majority has to run',
  },
  {
    rung: 'nats',
    is: (failure) =>
      hasCode('ECONNRESET', 'EPIPE', 'ERR_STREAM_WRITE_AFTER_END')(failure) ||
      says(/connection was lost/)(failure),
    cause: 'the server, or the network, has ended the connection',
    remedy: 'it is made again as soon as that is possible; if it is not, see the server’s log',
  },
  {
    rung: 'nats',
    is: says(/TimeoutError|timeout/i),
    cause: 'the server does not answer in time: the host is silent, or the server hangs',
    remedy: 'check the address, firewalls and the server’s log',
  },
];

/** What JetStream has said; that it has said nothing does not mean the server. */
export function failureOfJetStream(error: unknown): unknown {
  const isTimeout = chainOf(error).some(says(/TimeoutError|^Error: timeout/i));
  return isTimeout ? new Error('JetStream is silent', { cause: error }) : error;
}

/** The likeliest reason that the error, or what has caused it, speaks of. */
export function explainFailure(error: unknown): Explanation {
  const { cause, remedy } = failureOf(error);
  return { cause, remedy };
}

/** `rung`: what it was that failed; undefined, if that depends on what was asked for. */
export function failureOf(error: unknown): Explanation & { rung?: Rung | undefined } {
  const chain = chainOf(error);
  for (const { is, rung, cause, remedy } of RULES) {
    const found = chain.find((failure) => is(failure));
    if (found !== undefined) return { rung, cause: `${cause} (${sayingOf(found)})`, remedy };
  }
  return { cause: messageOf(error), remedy: 'see the server’s log' };
}

/** An error about several addresses has a code, but no message. */
function sayingOf(failure: Failure): string {
  const message = messageOf(failure);
  return message === '' ? String(failure.code) : message;
}
