/** Explains errors of the NATS client, JetStream and the system to operators: cause and remedy. */

import type { ConnectionOptions } from '@nats-io/transport-node';
import { fieldOf, messageOf } from '../../base/thrown-value.ts';
import type { Explanation } from '../../errors/phases.ts';

type Failure = { name?: unknown; code?: unknown; message?: unknown; cause?: unknown };

/** The error and its chain of causes, outermost first. */
export function chainOf(error: unknown): Failure[] {
  const chain: Failure[] = [];
  for (let at: unknown = error; typeof at === 'object' && at !== null; at = fieldOf(at, 'cause')) {
    if (chain.length === 8) break;
    chain.push(at);
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

/**
 * The first rule that fits any error of the chain explains the failure: special rules come before
 * general ones.
 */
const RULES: readonly Rule[] = [
  {
    is: ({ name, message }) =>
      name === 'UnavailableError' && /needs the package/.test(String(message)),
    cause: 'the client for NATS cannot be loaded',
    remedy: 'npm install @nats-io/transport-node @nats-io/jetstream @nats-io/kv',
  },
  {
    rung: 'auth',
    is: says(/^ConnectOptionError:/),
    cause: 'the function `connect` of the options has failed',
    remedy: 'see why that function fails: no server was asked',
  },
  {
    rung: 'auth',
    is: says(/: ALLSTOP_NATS_\w+ cannot be read/),
    cause: 'the credentials are missing',
    remedy: 'see that the file is there, and that this user may read it',
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
    cause:
      'the host of the server cannot be reached: no route, it is off, or a firewall drops packets',
    remedy: 'check the address in `servers`, the host, the network and firewalls',
  },
  {
    rung: 'nats',
    is: says(/maximum connections exceeded/i),
    cause: 'the server has as many connections as it permits',
    remedy: 'raise `max_connections` of the server, or end programs that are connected to it',
  },
  {
    rung: 'auth',
    is: says(/^NoCredentialsError:/),
    cause: 'the server wants credentials, and none were given',
    remedy:
      'set ALLSTOP_NATS_USER and ALLSTOP_NATS_PASS (or ALLSTOP_NATS_TOKEN, _NKEY or _CREDS) for a command; give `user` and `pass` (or `token`, `nkey`, `creds`) in a program',
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
    cause: 'the nkey seed or the credentials file is not valid',
    remedy: 'give the seed of an nkey (SU…) as `nkey`, or the content of a .creds file as `creds`',
  },
  {
    rung: 'tls',
    is: says(/tls_verify|certificate required|handshake failure|bad certificate/i),
    cause: 'the server requires a client certificate',
    remedy: 'give a certificate that the server trusts as `tls.certFile` and `tls.keyFile`',
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
      'give the CA that signed it, a file in the PEM format, as `tls.caFile` (ALLSTOP_NATS_CA_FILE); check the names and dates in it',
  },
  {
    rung: 'tls',
    is: says(/does not support 'tls'|server does not support TLS/i),
    cause: 'TLS was requested, but the server does not offer it',
    remedy: 'set up TLS in the server, or leave out `tls` and tls://',
  },
  {
    rung: 'tls',
    is: ({ code, message }) =>
      /^(?:ERR_SSL_|ERR_TLS_|ERR_OSSL_)/.test(String(code)) ||
      String(message).endsWith(" doesn't exist"),
    cause: 'the TLS handshake failed, or a file given as `tls` cannot be read',
    remedy: 'check the files given as `tls`, and the TLS settings of the server',
  },
  {
    rung: 'jetstream',
    is: says(/JetStreamNotEnabled|jetstream.*not enabled|jetstream is not enabled/i),
    cause: 'the server has no JetStream, or not for this account',
    remedy: 'start nats-server with `--jetstream`, or enable it for the account',
  },
  {
    rung: 'nats',
    is: says(/unexpected response|invalid.*info|parse error|ProtocolError|in JSON at position/i),
    cause: 'the service on that port is not a NATS server',
    remedy: 'check the port in `servers`: the default port for clients is 4222',
  },
  {
    rung: 'nats',
    is: says(/closed without a greeting|undefined error/),
    cause:
      'the service on that port closes the connection at once: it is not a NATS server, or expects TLS first',
    remedy:
      'check the port in `servers`; if the server has `handshake_first`, set tls.handshakeFirst',
  },
  {
    is: says(/max_payload/),
    cause: 'a message is longer than the server takes',
    remedy: 'raise `max_payload` of the server (1MB is usual)',
  },
  {
    is: says(/permissions violation|PermissionViolation/i),
    cause: 'the server does not permit a subject that is needed',
    remedy: 'give the role the permissions that docs/nats.md lists',
  },
  {
    rung: 'jetstream',
    is: says(/JetStreamApiError.*(replicas|no suitable peers|insufficient)/i),
    cause: 'JetStream has too few servers, or too little space, for the bucket of the cluster',
    remedy:
      'start more servers, or lower `replicas` to their number; check the limits of JetStream',
  },
  {
    rung: 'jetstream',
    is: says(/JetStream is silent under the name/),
    cause:
      'the server answers, but no JetStream of that domain or prefix does: no server has it, or it has no leader now',
    remedy:
      'give the domain as a server has it in `jetstream { domain }` (--domain, `jetstream.domain` or `apiPrefix`); if it is right, see the logs of its servers',
  },
  {
    rung: 'jetstream',
    is: says(/JetStream is silent/),
    cause: 'the server answers, but its JetStream does not: it has no leader now, or hangs',
    remedy:
      'if there are several servers, a majority has to run and to reach each other; see their logs',
  },
  {
    rung: 'jetstream',
    is: says(/no responders|NoResponders/i),
    cause: 'JetStream does not answer: it is off, or has no leader now',
    remedy:
      'start nats-server with `--jetstream`; if there are several servers, a majority has to run',
  },
  {
    rung: 'nats',
    is: (failure) =>
      hasCode('ECONNRESET', 'EPIPE', 'ERR_STREAM_WRITE_AFTER_END')(failure) ||
      says(/connection was lost/)(failure),
    cause: 'the server or the network has ended the connection',
    remedy: 'wait: allstop reconnects by itself; if it cannot, see the server’s log',
  },
  {
    rung: 'nats',
    is: says(/TimeoutError|timeout/i),
    cause: 'the server does not answer in time: the host is silent, or the server hangs',
    remedy: 'check the address, firewalls and the server’s log',
  },
];

/** Marks refused credentials where none were given: the server's error is the same. */
export function failureOfLogin(
  error: unknown,
  { user, token, authenticator }: ConnectionOptions,
): unknown {
  const isGiven = [user, token, authenticator].some((each) => each !== undefined);
  if (isGiven || failureOf(error).rung !== 'auth') return error;
  const found = new Error(messageOf(error), { cause: error });
  found.name = 'NoCredentialsError';
  return found;
}

/**
 * The cause and remedy of the first rule that fits the error or one of its causes. `servers`: the
 * addresses that were tried, which the cause names.
 */
export function explainFailure(error: unknown, servers = ''): Explanation {
  const { cause, remedy } = failureOf(error);
  const isNamed = servers.split(', ').every((server) => cause.includes(server));
  return { cause: isNamed ? cause : `${cause}; server ${servers}`, remedy };
}

/** `rung`: the step that failed; undefined if the error alone does not tell the step. */
export function failureOf(error: unknown): Explanation & { rung?: Rung | undefined } {
  const chain = chainOf(error);
  for (const { is, rung, cause, remedy } of RULES) {
    const found = chain.find((failure) => is(failure));
    if (found !== undefined) return { rung, cause: `${cause} (${textOf(found)})`, remedy };
  }
  return { cause: inOneLine(messageOf(error)), remedy: 'see the server’s log' };
}

/** An AggregateError of several addresses has a code, but no message. */
function textOf(failure: Failure): string {
  // The remedy of the rule takes the place of the one in the message.
  const message = inOneLine(messageOf(failure).replace(/\. What to do: [^]*/, ''));
  return message === '' ? String(failure.code) : message;
}

/** Each event of `allstop worker` is a line. The messages of OpenSSL have line breaks. */
const inOneLine = (message: string): string => message.trim().replaceAll(/\s*\n\s*/g, ' ');
