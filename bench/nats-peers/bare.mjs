/**
 * The peer without a framework: a JetStream work queue, from which workers pull, and a stream of
 * results. No retries, errors, stops or data sets: it shows the cost of the transport alone.
 */

import { AckPolicy, DeliverPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';

const SLOTS = 16;

export async function prepare(servers) {
  const nats = await connect({ servers });
  const manager = await jetstreamManager(nats);
  await manager.streams.add({ name: 'work', subjects: ['work.>'], retention: 'workqueue' });
  await manager.streams.add({ name: 'result', subjects: ['result.>'] });
  const durable = { durable_name: 'workers', ack_policy: AckPolicy.Explicit, ack_wait: 2e9 };
  await manager.consumers.add('work', { ...durable, max_ack_pending: 10_000 });
  const js = jetstream(nats);
  const waiting = new Map();
  const results = await js.consumers.get('result', { deliver_policy: DeliverPolicy.New });
  const messages = await results.consume({ max_messages: 5_000 });
  void (async () => {
    for await (const message of messages) {
      const { id, value } = message.json();
      waiting.get(id)?.(value);
      waiting.delete(id);
    }
  })();
  let last = 0;
  return {
    async run(a, b) {
      const id = ++last;
      const promise = new Promise((resolve) => {
        waiting.set(id, resolve);
      });
      await js.publish('work.add', JSON.stringify({ id, args: [a, b] }));
      return await promise;
    },
    async close() {
      await nats.close();
    },
  };
}

/** Runs in the worker process. */
export async function work(servers) {
  const nats = await connect({ servers });
  const js = jetstream(nats);
  const consumer = await js.consumers.get('work', 'workers');
  const slot = async () => {
    for (;;) {
      const message = await consumer.next({ expires: 1_000 });
      if (message === null) continue;
      const { id, args } = message.json();
      const value = args[0] + args[1];
      await js.publish(`result.${id}`, JSON.stringify({ id, value }));
      message.ack();
    }
  };
  for (let index = 0; index < SLOTS; index++) void slot();
}
