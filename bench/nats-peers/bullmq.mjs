/** BullMQ, on a Redis of its own. */

import { importPeer } from '../peers.mjs';

const NAME = 'bench';
const connectionOf = (address) => {
  const [host, port] = address.split(':');
  return { host, port: Number(port), maxRetriesPerRequest: null };
};

export async function prepare(address) {
  const { Queue, QueueEvents } = await importPeer('bullmq');
  const connection = connectionOf(address);
  const queue = new Queue(NAME, { connection });
  const events = new QueueEvents(NAME, { connection });
  await events.waitUntilReady();
  const waiting = new Map();
  events.on('completed', ({ jobId, returnvalue }) => {
    waiting.get(jobId)?.(returnvalue);
    waiting.delete(jobId);
  });
  let last = 0;
  /** Waited for before it is added: its event may come before the answer. */
  const jobOf = ([a, b]) => {
    const jobId = `job-${++last}`;
    const value = new Promise((resolve) => {
      waiting.set(jobId, resolve);
    });
    return { job: { name: 'add', data: { a, b }, opts: { jobId, removeOnComplete: true } }, value };
  };
  return {
    async run(a, b) {
      const { job, value } = jobOf([a, b]);
      await queue.add(job.name, job.data, job.opts);
      return await value;
    },
    /** Many at once are added in one go, as its manual recommends. */
    async runAll(pairs) {
      const jobs = pairs.map(jobOf);
      await queue.addBulk(jobs.map(({ job }) => job));
      return await Promise.all(jobs.map(({ value }) => value));
    },
    async close() {
      await events.close();
      await queue.close();
    },
  };
}

/** In a process of its own. */
export async function work(address) {
  const { Worker } = await importPeer('bullmq');
  const options = { connection: connectionOf(address), concurrency: 16 };
  new Worker(NAME, async ({ data: { a, b } }) => a + b, options);
}
