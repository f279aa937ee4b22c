/**
 * `allstop worker` runs functions of a module on this machine, for the coordinator of a cluster.
 */

import type { Command } from './base/command.ts';

export const worker: Command = {
  summary: 'runs functions of a module on this machine, for a cluster on NATS',
  help: `Connects to the NATS servers, waits for the coordinator of the cluster, and runs the
functions that the coordinator schedules. When that coordinator has ended, the worker waits
for the next one. The functions run on worker threads, at most --slots at the same time.

Credentials are read from environment variables or files, never from options; the functions do
not find them in their environment. TLS is used if a server is given as tls://… or requires TLS.

After the first SIGINT or SIGTERM the worker accepts no more functions and ends when those
that it has are done. After the second it ends at once; its functions then run again elsewhere.
Each line of output on stderr begins with the time (UTC). With --json each is an event as JSON.

A service (systemd, Docker, Kubernetes) runs node_modules/.bin/allstop itself, or
node node_modules/allstop/dist/cli/main.js, because the signal has to reach the worker. npx ends
at a SIGTERM of its own; a worker that npx has started sees that end, and then ends as after
a SIGTERM.

Exit code: 130 after SIGINT, 143 after SIGTERM, 1 after an error.`,
  examples: [
    'npx allstop worker --module dist/tasks.js --servers nats://127.0.0.1:4222 --cluster main',
    'exec node_modules/.bin/allstop worker --module tasks.js --servers tls://nats-1,tls://nats-2 --cluster main --slots 8',
  ],
  environment: [
    ['ALLSTOP_NATS_USER, ALLSTOP_NATS_PASS', 'user and password'],
    ['ALLSTOP_NATS_TOKEN', 'a token'],
    ['ALLSTOP_NATS_NKEY', 'the seed of an nkey (SU…)'],
    ['ALLSTOP_NATS_CREDS', 'the text of a .creds file'],
    [
      'ALLSTOP_NATS_PASS_FILE, …_TOKEN_FILE, …_NKEY_FILE, …_CREDS_FILE',
      'the path of a file that holds the same',
    ],
    ['ALLSTOP_NATS_CA_FILE', 'the certificates to trust; also asks for TLS'],
    ['ALLSTOP_NATS_CERT_FILE, ALLSTOP_NATS_KEY_FILE', 'the certificate of this client and its key'],
    ['ALLSTOP_NATS_HANDSHAKE_FIRST=1', "for servers that are set to 'handshake_first'"],
    ['NODE_DEBUG=allstop', 'a line on stderr for each error, stop and thread'],
  ],
  options: [
    'module',
    'servers',
    'cluster',
    'job',
    'task',
    'spec',
    'definition',
    'slots',
    'recycle',
    'setup',
    'teardown',
    'resources',
    'health',
  ],
  required: ['module', 'servers', 'cluster'],
  run: async (options) => {
    // Imported here: the other commands must work even if the rest of the library cannot load.
    const { serve } = await import('./worker/serve.ts');
    return serve(options);
  },
};
