// A process that does not end by itself, with exitAfterStop.
// argv: what it does after the stop, how it is stopped, the options of exitAfterStop.
import { execSync, spawn } from 'node:child_process';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';
import { addon } from './test-addon.mjs';

const [way, stop, options] = process.argv.slice(2);
const words = new Int32Array(new SharedArrayBuffer(4));

const ways = {
  computes: () => {
    for (;;);
  },
  waits: () => Atomics.wait(words, 0, 0),
  'runs a command': () => execSync('sleep 60'),
  'is idle': () => {},
};

function main() {
  const coord = new Coordinator({ name: 'app' });
  // Where the report depends on what the process has reached by then, a busy machine needs longer.
  const exit = coord.exitAfterStop(way === 'computes' ? 50 : 500, JSON.parse(options));
  coord.stopOnSignals();
  void coord.start(() => new Promise(() => {}), { name: 'http' });
  setInterval(() => {}, 60_000);
  const stops = {
    signal: () => say('ready'), // the test sends it
    call: () => coord.requestStop(),
    error: () => {
      const cause = new RangeError('no space is left');
      coord.requestStop(new TypeError('the disk is full\nand more', { cause }));
    },
    // Names and texts that steer a terminal, or forge a line of the report.
    'forged error': () => {
      const error = new RangeError('full\rallstop: forged\x1b[31m\u009b2J\n\tand\x1b[32m more');
      error.name = 'Forged\nallstop: Error\x1b[33m';
      coord.requestStop(error);
    },
    'forged thread': () => {
      const name = 'reader\nallstop: forged\x1b[34m';
      addon.start(coord, 'throw', name, 'full');
      addon.openGate(name);
    },
    // The first that was registered waits for the second, which never ends.
    hooks: () => {
      coord.onStop(() => {}, { name: 'close db' });
      coord.onStop(() => new Promise(() => {}), { name: 'close http' });
      coord.requestStop();
    },
    'another coordinator': () => {
      const back = new Coordinator({ name: 'back' });
      void back.start(() => new Promise(() => {}), { name: 'database\n\x1b[31m' });
      for (let n = 0; n < 2_000; n += 1) void back.start(() => new Promise(() => {}));
      coord.onStop(() => back[Symbol.asyncDispose](), { name: 'close back' });
      void new Coordinator({ name: 'goes on' }).start(() => new Promise(() => {}));
      coord.requestStop();
    },
    parent: () => {
      exit[Symbol.dispose]();
      coord.child({ name: 'child' }).exitAfterStop(50);
      say('ready');
    },
    worker: () => {
      exit[Symbol.dispose]();
      const worker = new Worker(new URL(import.meta.url), { workerData: coord.handle });
      worker.once('exit', () => {
        coord.requestStop();
        ways[way]();
      });
    },
    native: () => {
      addon.start(coord, 'gate', 'reader');
      coord.requestStop();
    },
    'native error': () => {
      const back = new Coordinator();
      addon.start(back, 'throw', 'writer', 'the disk is full');
      addon.openGate('writer');
      back.join().catch((error) => coord.requestStop(error));
    },
    'dead process': () => {
      const child = spawn(process.execPath, ['-e', 'process.exit(3)']);
      coord.registerThread(child, { name: 'child\x1b[31m' });
    },
    joined: () => {
      coord.requestStop();
      const join = coord.join({ stopGracePeriodMs: 0, ignoreLiveThreads: true });
      void join.then(() => say('joined'));
    },
    cleared: () => {
      coord.requestStop();
      coord.clearStop();
      setTimeout(() => {
        say('alive after the cleared stop');
        coord.requestStop();
      }, 700);
    },
    disposed: () => {
      coord.requestStop();
      exit[Symbol.dispose]();
      setTimeout(() => {
        say('alive after the disposal');
        process.exit(5);
      }, 700);
    },
    'slow formatter': () => {
      Error.prepareStackTrace = () => {
        say('formatting');
        for (;;);
      };
      coord.requestStop();
    },
    'deaf reader': () => {
      const line = 'x'.repeat(1023);
      coord.requestStop();
      for (;;) process.stderr.write(`${line}\n`); // blocks when the pipe is full
    },
  };
  stops[stop]();
  if (stop !== 'worker') ways[way]();
}

if (isMainThread) main();
else Coordinator.attach(workerData).exitAfterStop(50, { exitCode: 9 });
