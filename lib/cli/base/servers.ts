/** Checks `--servers` and `--cluster`, and reads the credentials from the environment. */

import { messageOf } from '../../base/thrown-value.ts';
import {
  checkConnectionOptions,
  credentialsOf,
  type NatsConnectionOptions,
  type NatsCredentials,
} from '../../nats/connection/connection-options.ts';
import { CLUSTER_NAME } from '../../nats/wire/subjects.ts';
import { CREDENTIALS_GIVEN, UsageError } from './command.ts';

/** @throws UsageError */
export function connectionOf(servers: string, domain?: string): NatsConnectionOptions {
  if (servers.includes('@')) throw new UsageError(CREDENTIALS_GIVEN);
  try {
    const env = { ...process.env }; // a worker deletes the credentials from its own
    const renew = (): NatsCredentials => credentialsOf(env);
    const jetstream = domain === undefined ? {} : { jetstream: { domain } };
    return checkConnectionOptions({ servers, ...credentialsOf(env), ...jetstream, renew });
  } catch (error) {
    throw new UsageError(messageOf(error).replace('options.jetstream.domain', '--domain'));
  }
}

/** @throws UsageError */
export function clusterOf(name: string): string {
  if (CLUSTER_NAME.test(name)) return name;
  throw new UsageError(`--cluster must be 1 to 64 letters, digits, - and _, not '${name}'`);
}
