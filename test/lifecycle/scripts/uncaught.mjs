// Uncaught errors that stop a coordinator. argv: the name of a story below.
import { once } from 'node:events';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

const EVENTS = ['uncaughtException', 'unhandledRejection', 'worker'];
const listeners = () => EVENTS.map((event) => process.listenerCount(event));
const ignore = () => {};

/** Says what the coordinator was stopped by. */
async function tell(coord) {
  await coord.waitForStop();
  const error = await coord.join().catch((thrown) => thrown);
  const { via, threadName } = coord.stopRecord.requester;
  say('stopped', { error: String(error), via, threadName, exitCode: process.exitCode });
}

const later = (fn) => setImmediate(() => fn());

const stories = {
  async exception() {
    const coord = new Coordinator();
    coord.stopOnUncaught();
    later(() => {
      throw new RangeError('uncaught');
    });
    await tell(coord);
  },
  async rejection() {
    const coord = new Coordinator();
    coord.stopOnUncaught();
    later(() => void Promise.reject('a string'));
    await tell(coord);
  },
  async 'own exit code'() {
    process.exitCode = 7;
    const coord = new Coordinator();
    coord.stopOnUncaught();
    later(() => void Promise.reject(new RangeError('uncaught')));
    await tell(coord);
  },
  async run() {
    const run = Coordinator.run(
      (coord) => {
        later(() => void Promise.reject(new RangeError('uncaught')));
        return coord.waitForStop();
      },
      { stopOnUncaught: true },
    );
    say('ran', { error: String(await run.catch((error) => error)), listeners: listeners() });
  },
  async 'run, in its last hook'() {
    const lose = (coord) => {
      coord.onStop(() => void Promise.reject(new RangeError('uncaught')));
    };
    const run = Coordinator.run(lose, { stopOnUncaught: true });
    say('ran', { error: String(await run.catch((error) => error)), listeners: listeners() });
  },
  async 'run, in its last deferred function'() {
    const lose = (coord) => {
      coord.defer(() => void Promise.reject(new RangeError('uncaught')));
    };
    const run = Coordinator.run(lose, { stopOnUncaught: true });
    say('ran', { error: String(await run.catch((error) => error)), listeners: listeners() });
  },
  async echo() {
    const coord = new Coordinator();
    coord.stopOnUncaught();
    void once(process, 'never', { signal: coord.signal }); // rejects at the stop, unhandled
    coord.requestStop();
    await new Promise(later);
    await coord.join();
  },
  async disposed() {
    const before = listeners();
    const coord = new Coordinator();
    const links = [coord.stopOnUncaught(), coord.stopOnUncaught(), coord.adoptWorkers()];
    await new Promise(later);
    const during = listeners();
    say('linked', { before, during, links: coord.explain().links });
    for (const link of [...links, ...links]) link[Symbol.dispose]();
    say('disposed', { after: listeners(), links: coord.explain().links });
    later(() => {
      throw new RangeError('as ever');
    });
  },
  async worker() {
    const coord = new Coordinator();
    const worker = new Worker(new URL(import.meta.url), { workerData: coord.handle });
    worker.on('message', ignore);
    await tell(coord);
    await once(worker, 'exit');
  },

  async adopted() {
    const coord = new Coordinator();
    coord.adoptWorkers();
    new Worker(`throw new RangeError('in the worker')`, { eval: true });
    await tell(coord);
  },
  /** None of them stops the coordinator. */
  async 'not adopted'() {
    const coord = new Coordinator();
    const early = new Worker(`throw new RangeError('early')`, { eval: true });
    const link = coord.adoptWorkers();
    const exits = new Worker('process.exit(3)', { eval: true });
    const trimmed = new Worker('setInterval(() => {}, 1000)', { eval: true });
    await Promise.all([
      once(early, 'error'),
      once(exits, 'exit'),
      once(trimmed, 'online').then(() => trimmed.terminate()),
    ]);
    link[Symbol.dispose]();
    const late = new Worker(`throw new RangeError('late')`, { eval: true });
    await once(late, 'error');
    say('over', { stopped: coord.shouldStop(), listeners: listeners() });
  },
};

if (isMainThread) {
  await stories[process.argv[2]]();
} else {
  const coord = Coordinator.attach(workerData);
  coord.stopOnUncaught();
  later(() => {
    throw new RangeError('in the worker');
  });
  await coord.waitForStop();
  say('the worker lives');
}
