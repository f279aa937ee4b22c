/** `allstop doctor` checks whether the package works here and says why if not. */

import { type Command, UsageError } from './base/command.ts';

export const doctor: Command = {
  summary: 'checks this machine, or a NATS cluster, and says what is wrong and what to do',
  help: `Without options: checks whether allstop works on this machine. It looks at the JavaScript
runtime (Node.js, Bun or Deno), the platform, the permissions and the native binary, runs a
short test with the binary, and lists known problems of this runtime. The binary is loaded in
a child process, so a binary that crashes is reported like any other problem.

With --servers: checks why a cluster on NATS does not start. For each server it checks the
DNS name, the TCP connection, whether a NATS server answers, TLS, the credentials and
JetStream. With --cluster as well: it asks the cluster's coordinator for its report, and
each worker process whether it is there. It changes nothing in the cluster, and ends within
20 s. Credentials come from environment variables: see 'allstop help worker'.

Exit code: 0 if all is well, 1 if a problem was found.`,
  examples: [
    'npx allstop doctor',
    'npx allstop doctor --json',
    'npx allstop doctor --servers nats-1:4222,nats-2:4222 --cluster main',
  ],
  environment: [
    ['ALLSTOP_BINARY', 'the path of the native binary to load instead of the one of the package'],
    ['NO_COLOR', 'if it is set, the marks have no colour'],
    ['FORCE_COLOR', 'if it is set and not 0 or false, the marks have colour, also in a pipe'],
    ['ALLSTOP_NATS_…', "credentials for --servers: see 'allstop help worker'"],
  ],
  options: ['servers', 'cluster', 'domain', 'verbose'],
  run: async ({ servers, cluster, domain, verbose, json }) => {
    if (servers !== undefined) {
      const { diagnoseNetwork } = await import('./doctor/network/diagnose-network.ts');
      return diagnoseNetwork(servers, cluster, domain);
    }
    if (cluster !== undefined) throw new UsageError("'doctor' needs --servers for --cluster");
    if (domain !== undefined) throw new UsageError("'doctor' needs --servers for --domain");
    // Imported here: the other commands must work even if the rest of the library cannot load.
    const { diagnose } = await import('./doctor/diagnose.ts');
    return diagnose(verbose === true || json === true);
  },
};
