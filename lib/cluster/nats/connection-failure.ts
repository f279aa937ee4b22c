/** Why there is no connection, and what to do: for people. */

import { messageOf } from '../../thrown-value.ts';

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

type Rule = { is: (failure: Failure) => boolean; cause: string; remedy: string };

const hasCode =
  (...codes: string[]) =>
  ({ code }: Failure): boolean =>
    typeof code === 'string' && codes.includes(code);
const says =
  (pattern: RegExp) =>
  ({ name, message }: Failure): boolean =>
    pattern.test(`${String(name)}: ${String(message)}`);

const RULES: readonly Rule[] = [
  {
    is: hasCode('ENOTFOUND', 'EAI_AGAIN'),
    cause: 'the name of the server is unknown (DNS)',
    remedy: 'check the name in `servers`, and the DNS of this machine',
  },
  {
    is: hasCode('ECONNREFUSED'),
    cause: 'the host refuses connections at that port: no server listens there',
    remedy: 'start nats-server there, or correct the port in `servers`',
  },
  {
    is: hasCode('EHOSTUNREACH', 'ENETUNREACH'),
    cause: 'there is no way to the host of the server',
    remedy: 'check the address in `servers`, the network and firewalls',
  },
  {
    is: says(/AuthorizationError|authorization violation|user authentication|AuthenticationError/i),
    cause: 'the server does not accept the credentials',
    remedy: 'check user and password, token or nkey; and which of them the server wants',
  },
  {
    is: hasCode(
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'CERT_HAS_EXPIRED',
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ),
    cause: 'the certificate of the server is not trusted',
    remedy: 'give the authority that has signed it as `tls.caFile`; check its names and dates',
  },
  {
    is: says(/does not support 'tls'|server does not support TLS/i),
    cause: 'the server has no TLS, and it was asked for',
    remedy: 'set up TLS in the server, or leave `tls` out',
  },
  {
    is: says(/requires TLS|secure connection|TLS.*required|client requires/i),
    cause: 'the server wants TLS',
    remedy: 'give `tls`',
  },
  {
    is: says(/JetStreamNotEnabled|jetstream.*not enabled|jetstream is not enabled/i),
    cause: 'the server has no JetStream, or not for this account',
    remedy: 'start nats-server with `--jetstream`, or enable it for the account',
  },
  {
    is: says(/unexpected response|invalid.*info|parse error|ProtocolError/i),
    cause: 'what answers there is no NATS server',
    remedy: 'check the port in `servers`: clients use 4222',
  },
  {
    is: says(/permissions violation|PermissionViolation/i),
    cause: 'the server does not permit a subject that is needed',
    remedy: 'give the role the permissions that docs/operations.md lists',
  },
  {
    is: says(/JetStreamApiError.*(replicas|no suitable peers|insufficient)/i),
    cause: 'JetStream has not enough servers for so many replicas',
    remedy: 'start more servers, or set `replicas` to as many as there are',
  },
  {
    is: says(/no responders|NoResponders/i),
    cause: 'JetStream does not answer: it is off, or has no leader now',
    remedy: 'start nats-server with `--jetstream`; with several servers a majority has to run',
  },
  {
    is: says(/TimeoutError|timeout/i),
    cause: 'the server does not answer in time: the host is silent, or the server hangs',
    remedy: 'check the address, firewalls and the server’s log',
  },
];

/** The likeliest reason that the error, or what has caused it, speaks of. */
export function explainFailure(error: unknown): Explanation {
  const chain = chainOf(error);
  for (const rule of RULES) {
    const found = chain.find((failure) => rule.is(failure));
    if (found !== undefined)
      return { cause: `${rule.cause} (${messageOf(found)})`, remedy: rule.remedy };
  }
  return { cause: messageOf(error), remedy: 'see the server’s log' };
}
