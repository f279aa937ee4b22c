// Coordinator.run whose program does not end as it should. argv: which.
import { Coordinator } from 'allstop';

const deaf = (coord) => {
  coord.spawn('for (;;);', { eval: true, name: 'deaf' });
  coord.requestStop(new RangeError('the first error'));
};

/** Awaits a promise that nobody settles; a timer keeps the process until the stop. */
const lost = (coord, promise = new Promise(() => {})) => {
  const timer = setInterval(() => {}, 60_000);
  coord.onStop(() => clearInterval(timer));
  process.kill(process.pid, 'SIGTERM');
  return promise;
};

const ways = {
  // The error ends the process in the turn in which the join has left the worker behind.
  uncaught: () => Coordinator.run(deaf, { name: 'app', stopGracePeriodMs: 50 }),
  'process.exit()': async () => {
    await Coordinator.run(deaf, { name: 'app', stopGracePeriodMs: 50 }).catch(() => {});
    process.exit(3);
  },
  'many joins': async () => {
    const joins = Array.from({ length: 20 }, (_, i) => {
      const coord = new Coordinator();
      void coord.start(() => new Promise(() => {}), { name: `left-${i}` });
      coord.requestStop();
      return coord.join([], { stopGracePeriodMs: 0, ignoreLiveThreads: true });
    });
    await Promise.all(joins);
    process.exit(3);
  },
  'a body that hangs': async () => {
    setInterval(() => {}, 60_000);
    const body = (coord) => {
      coord.requestStop();
      return new Promise(() => {});
    };
    await Coordinator.run(body, { name: 'app', exitAfterStopMs: 500 });
  },
  'a deferred function that hangs': async () => {
    setInterval(() => {}, 60_000);
    const body = (coord) => {
      coord.defer(() => new Promise(() => {}), { name: 'close db' });
    };
    await Coordinator.run(body, { name: 'app', exitAfterStopMs: 500 });
  },
  'a deferred function that nobody settles': async () => {
    const body = (coord) => {
      coord.defer(() => new Promise(() => {}), { name: 'close db' });
    };
    await Coordinator.run(body, { name: 'app', exitAfterStopMs: 500 });
  },
  'a lost body, awaited': () => Coordinator.run(lost, { stopOnSignals: ['SIGTERM'] }),
  'a lost body': () => {
    void Coordinator.run(lost, { stopOnSignals: ['SIGTERM'] });
  },
  'a lost body, and process.exit()': () => {
    void Coordinator.run(lost, { stopOnSignals: ['SIGTERM'] });
    process.once('SIGTERM', () => process.exit(3));
  },
  'a body that seems lost': () => {
    let resolve;
    const promise = new Promise((settle) => {
      resolve = settle;
    });
    void Coordinator.run((coord) => lost(coord, promise), { stopOnSignals: ['SIGTERM'] });
    process.once('beforeExit', resolve);
  },
  'a lost body without a stop': () => {
    void Coordinator.run(() => new Promise(() => {}));
  },
  'a body that has returned': async () => {
    setInterval(() => {}, 60_000);
    await Coordinator.run((coord) => coord.requestStop(), { name: 'app', exitAfterStopMs: 500 });
  },
  'a body that has returned, and a loop': async () => {
    await Coordinator.run((coord) => coord.requestStop(), { name: 'app', exitAfterStopMs: 500 });
    for (;;);
  },
};

await ways[process.argv[2]]();
