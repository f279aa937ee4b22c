/** Answers with when it has heard: the plain way in which a stop reaches a process. */

import { connect } from '@nats-io/transport-node';

const nats = await connect({ servers: process.argv[2] });
nats.subscribe('go', {
  callback: () => nats.publish('heard', String(process.hrtime.bigint())),
});
await nats.flush();
process.stdout.write('ready\n');
