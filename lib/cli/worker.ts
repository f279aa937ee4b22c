/**
 * `allstop worker` runs functions of a module on this machine, for the coordinator of a cluster.
 */

import type { Command } from './base/command.ts';

export const worker: Command = {
  summary: 'runs functions of a module on this machine, for a cluster on NATS',
  help: `Connects to the NATS servers, waits for the coordinator of the cluster, and runs the
functions that the coordinator schedules. When that coordinator has ended, the worker waits
for the next one. The functions run on worker threads, at most --slots at the same time.

Credentials are read from environment variables, never from options; the functions do not
find them in their environment:
  ALLSTOP_NATS_USER and ALLSTOP_NATS_PASS   user and password
  ALLSTOP_NATS_TOKEN                        a token
  ALLSTOP_NATS_NKEY                         the seed of an nkey (SU…)
  ALLSTOP_NATS_CREDS                        the text of a .creds file
Each of PASS, TOKEN, NKEY and CREDS may be read from a file instead, whose path is given as
ALLSTOP_NATS_PASS_FILE and so on.

TLS is used if a server is given as tls://… or requires TLS:
  ALLSTOP_NATS_CA_FILE                      the certificates to trust; also asks for TLS
  ALLSTOP_NATS_CERT_FILE, …_KEY_FILE        the certificate of this client and its key
  ALLSTOP_NATS_HANDSHAKE_FIRST=1            for servers that are set to 'handshake_first'

After the first SIGINT or SIGTERM the worker accepts no more functions and ends when those
that it has are done. After the second it ends at once; its functions then run again elsewhere.
Exit code: 130 after SIGINT, 143 after SIGTERM, 1 after an error.`,
  options: [
    'module',
    'servers',
    'cluster',
    'job',
    'task',
    'spec',
    'definition',
    'slots',
    'setup',
    'teardown',
  ],
  required: ['module', 'servers', 'cluster'],
  run: async (options) => {
    // Imported here: the other commands must work even if the rest of the library cannot load.
    const { serve } = await import('./worker/serve.ts');
    return serve(options);
  },
};
