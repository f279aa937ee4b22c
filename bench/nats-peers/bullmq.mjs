/** The peer BullMQ, with a Redis server of its own. */

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
  /** Registers the wait before the job is added: the event may arrive before add() resolves. */
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
    /** Adds all jobs with addBulk(), as BullMQ's manual recommends. */
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

/** Runs in the worker process. */
export async function work(address) {
  const { Worker } = await importPeer('bullmq');
  const options = { connection: connectionOf(address), concurrency: 16 };
  new Worker(NAME, async ({ data: { a, b } }) => a + b, options);
}
