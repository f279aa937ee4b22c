/** `allstop doctor`: whether the package works here, and why if it does not. */

import { type Command, UsageError } from './base/command.ts';

export const doctor: Command = {
  summary: 'checks whether allstop works here, or a cluster comes up, and says why if not',
  help: `Checks the runtime, its permissions, the native binary and what comes of using it,
and lists what is known to be peculiar to this runtime. The binary is loaded in a
process of its own, which it may crash.

With --servers: what keeps a cluster from coming up. Each server: DNS, TCP, whether NATS
answers, TLS, credentials, JetStream. With --cluster, then: who has the cluster and whether
that coordinator answers, what it reports, and each worker. It changes nothing there, and
ends within 20 s. Who it is at the server is said by the environment, as for the worker.

Exit code: 0 all is well, 1 a problem was found.`,
  options: ['servers', 'cluster'],
  run: async ({ servers, cluster }) => {
    if (servers !== undefined) {
      const { diagnoseNetwork } = await import('./doctor/network/diagnose-network.ts');
      return diagnoseNetwork(servers, cluster);
    }
    if (cluster !== undefined) throw new UsageError("'doctor' needs --servers for --cluster");
    // Here, not above: the other commands work without the rest of the library.
    const { diagnose } = await import('./doctor/diagnose.ts');
    return diagnose();
  },
};
