/**
 * The peer for a stop: a process that listens to a subject and replies with the time of arrival.
 */

import { connect } from '@nats-io/transport-node';

const nats = await connect({ servers: process.argv[2] });
nats.subscribe('go', {
  callback: () => nats.publish('heard', String(process.hrtime.bigint())),
});
await nats.flush();
process.stdout.write('ready\n');
