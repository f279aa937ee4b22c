/** JetStream, as the options of a connection choose it; and what its errors mean. */

import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { load } from './connection.ts';
import { chainOf } from './connection-failure.ts';
import type { NatsConnectionOptions } from './connection-options.ts';

type Options = Pick<NatsConnectionOptions, 'jetstream'>;

export async function openJetStream(
  nats: NatsConnection,
  options: Options,
  timeout?: number,
): Promise<JetStreamClient> {
  const { jetstream } = await load('@nats-io/jetstream', () => import('@nats-io/jetstream'));
  const own: object = { ...options.jetstream, ...(timeout !== undefined && { timeout }) };
  return jetstream(nats, own);
}

/** Asks JetStream whether it is there. @throws (rejects) the client's error */
export const askJetStream = async (
  nats: NatsConnection,
  options: Options,
  timeout: number,
): Promise<JetStreamManager> =>
  (await openJetStream(nats, options, timeout)).jetstreamManager(true);

/** The codes of the server: JetStream is not enabled, for the account, or at all. */
const NOT_ENABLED: readonly unknown[] = [10039, 10076];

/** The codes of the server: JetStream does not answer now; servers for a bucket's copies are away. */
const NOT_NOW: readonly unknown[] = [10008, 10005];

/**
 * The client says "not enabled" whenever nobody answers, as while JetStream elects a leader. Then the
 * error becomes that of a JetStream that is silent, and so does a timeout: the server itself has
 * answered. It stays if JetStream is not there to come: the server says so, or is a single one without
 * JetStream.
 */
export function failureOfJetStream(
  error: unknown,
  nats: NatsConnection | undefined,
  options: Options,
): unknown {
  const chain = chainOf(error);
  if (chain.some(({ code }) => NOT_ENABLED.includes(code))) return error;
  const notEnabled = chain.find(({ name }) => name === 'JetStreamNotEnabled');
  if (notEnabled !== undefined) {
    const isSingle = nats?.info?.cluster === undefined && options.jetstream === undefined;
    const isOff = isSingle && nats?.info !== undefined && nats.info.jetstream !== true;
    return isOff ? error : new SilentJetStream(notEnabled.cause, options);
  }
  const isSilent = chain.some(
    ({ name, message, code }) =>
      name === 'TimeoutError' ||
      name === 'NoResponders' ||
      message === 'timeout' ||
      NOT_NOW.includes(code),
  );
  return isSilent ? new SilentJetStream(error, options) : error;
}

/** The server answers, but its JetStream does not now. */
export class SilentJetStream extends Error {
  constructor(cause: unknown, { jetstream }: Options) {
    const name = jetstream?.domain ?? jetstream?.apiPrefix;
    super(`JetStream is silent${name === undefined ? '' : ` under the name '${name}'`}`, { cause });
  }
}
