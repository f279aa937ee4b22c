/** What the simulation uses of the package, in one bundle (build.mjs). */

import { workerVariables } from '../../lib/cluster/variables/worker-variables.ts';
import type { WorkerSettings } from '../../lib/pool/worker/messages.ts';
import { runClusterThread as run } from '../../lib/pool/worker/worker-main.ts';

export { topologyOf } from '../../lib/cli/doctor/network/topology.ts';
export * from '../../lib/cluster/index.ts';
export { Attachment, attachmentOf } from '../../lib/coordinator/attachment.ts';
export { Coordinator } from '../../lib/coordinator/coordinator.ts';
export { binding } from '../../lib/native/native.ts';
export { checkConnectionOptions } from '../../lib/nats/connection/connection-options.ts';
export * from '../../lib/nats/index.ts';
export { ClusterNode } from '../../lib/nats/node/node.ts';
export { Call } from '../../lib/pool/queue/call.ts';
export { callsAreAsked } from '../../lib/pool/worker/call-store.ts';
export const runClusterThread = (settings: WorkerSettings): Promise<void> =>
  run(settings, workerVariables);
