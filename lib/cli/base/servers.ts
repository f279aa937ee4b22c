/** Checks `--servers` and `--cluster`, and reads the credentials from the environment. */

import {
  checkConnectionOptions,
  credentialsOf,
  type NatsConnectionOptions,
} from '../../cluster/nats/connection/connection-options.ts';
import { CLUSTER_NAME } from '../../cluster/nats/wire/subjects.ts';
import { UsageError } from './command.ts';

/** @throws UsageError */
export function connectionOf(servers: string): NatsConnectionOptions {
  if (servers.includes('@')) {
    throw new UsageError(
      'Do not put credentials on the command line, where every user of this machine can read them. ' +
        'Use the environment variables that `allstop worker --help` lists',
    );
  }
  try {
    return checkConnectionOptions({ servers, ...credentialsOf(process.env) });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** @throws UsageError */
export function clusterOf(name: string): string {
  if (CLUSTER_NAME.test(name)) return name;
  throw new UsageError(`--cluster must be 1 to 64 letters, digits, - and _, not '${name}'`);
}
