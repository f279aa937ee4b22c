/** `allstop worker`: serves a module's functions to a cluster, from this machine. */

import type { Command } from './base/command.ts';

export const worker: Command = {
  summary: 'runs the functions of a module for a cluster (NATS)',
  help: `Serves the module to the coordinator of the cluster, and to the next when that has ended.
Functions run on threads of their own, --slots of them.

Who it is at the server is said by the environment: ALLSTOP_NATS_USER and ALLSTOP_NATS_PASS,
ALLSTOP_NATS_TOKEN, ALLSTOP_NATS_NKEY (a seed), ALLSTOP_NATS_CREDS; or by files, ALLSTOP_NATS_PASS_FILE
and so on. TLS: servers as tls://…, ALLSTOP_NATS_CA_FILE, _CERT_FILE, _KEY_FILE; and
ALLSTOP_NATS_HANDSHAKE_FIRST=1 for servers that begin with TLS, without a greeting.

SIGINT and SIGTERM: it takes nothing more, and ends when what it has is done; the second time
at once. Exit code: 130, 143 after a signal.`,
  options: ['module', 'servers', 'cluster', 'job', 'task', 'spec', 'slots'],
  required: ['module', 'servers', 'cluster'],
  run: async (options) => {
    // Here, not above: the other commands work without the rest of the library.
    const { serve } = await import('./worker/serve.ts');
    return serve(options);
  },
};
