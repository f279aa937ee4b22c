// stopOnSignals() in a separate process, to which the test sends signals.
// argv: the name of a story below, and its arguments.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, Worker } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

const FAILURE_MS = 40_000;

/** Keeps the process alive, and ends it after a while if nothing else has ended it. */
function lifeline() {
  return setTimeout(() => {
    say('nothing happened');
    process.exit(99);
  }, FAILURE_MS);
}

/** @returns the signals that a listener of the program has heard, and will */
function hearOthers() {
  const heard = [];
  for (const name of ['SIGINT', 'SIGTERM']) process.on(name, (signal) => heard.push(signal));
  return heard;
}

/** A program that a signal stops. */
async function served(close = () => {}) {
  await Coordinator.run(
    async (coord) => {
      coord.onStop(close);
      say('ready');
      await coord.waitForStop();
    },
    { stopOnSignals: ['SIGINT', 'SIGTERM'] },
  );
}

const ways = {
  idle: (coord) => coord.waitForStop(),
  blocked: (coord) => coord.waitForStopSync(FAILURE_MS),
  busy(coord) {
    const deadline = performance.now() + FAILURE_MS;
    while (!coord.shouldStop() && performance.now() < deadline);
    return coord.shouldStop();
  },
};

const stories = {
  /** The first signal stops the coordinator; the process ends with its own exit code. */
  async first(way) {
    const coord = new Coordinator();
    coord.stopOnSignals();
    const others = ['SIGINT', 'SIGTERM'].map((signal) => once(process, signal));
    say('ready');
    const stopped = await ways[way](coord);
    const { kind, requester } = coord.stopRecord ?? {};
    say('stopped', { stopped, kind, via: requester?.via, signal: requester?.signal });
    const timer = lifeline();
    const [heard] = await Promise.race(others);
    say('heard by another listener', { signal: heard });
    clearTimeout(timer);
    process.exitCode = 3;
  },

  /** The second signal ends the process, although the program has a listener for that signal. */
  async second(way) {
    const coord = new Coordinator();
    coord.stopOnSignals();
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});
    lifeline();
    say('ready');
    if (way === 'hook') coord.onStop(() => new Promise(() => {}));
    await coord.waitForStop();
    say('stopped');
    if (way === 'idle' || way === 'hook') return;
    if (way === 'blocked') new Coordinator().waitForStopSync(FAILURE_MS);
    for (const end = performance.now() + FAILURE_MS; performance.now() < end; );
  },

  /**
   * A child dies of a signal that stops the program as well, `and` the program gets it, too, or
   * `alone`. The death is seen first. `how` the child dies: 'killed', or as a shell that exits.
   */
  async child(how, whether) {
    await Coordinator.run(
      async (coord) => {
        const code = {
          killed: 'setInterval(() => {}, 1e6)',
          exits: "setInterval(() => {}, 1e6); process.on('SIGINT', () => process.exit(130))",
        }[how];
        const child = spawn(process.execPath, ['-e', `${code}; process.stdout.write('here')`]);
        coord.registerThread(child, { name: 'child' });
        child.once('exit', () => {
          if (whether === 'and') process.kill(process.pid, 'SIGINT');
          if (whether === 'before an error') coord.requestStop(new TypeError('another error'));
        });
        await once(child.stdout, 'data');
        child.kill('SIGINT');
        await coord.waitForStop();
      },
      { stopOnSignals: ['SIGINT', 'SIGTERM'] },
    );
  },

  /**
   * A child of `coord.fork` gets a signal, and the program too if it is `and`. A hook of the program
   * still asks the child.
   */
  async forked(signal, whether) {
    const forked = new URL('../../fixtures/forked.mjs', import.meta.url);
    await Coordinator.run(
      async (coord) => {
        const child = coord.fork(forked, ['answerUntilAsked']);
        coord.onStop(async () => {
          child.send('are you there?');
          const [answer] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
          say('child', { answer, by: coord.stopRecord.requester.signal });
        });
        await once(child, 'message');
        child.kill(signal);
        if (whether === 'and') process.kill(process.pid, signal);
        await coord.waitForStop();
      },
      { stopOnSignals: ['SIGINT', 'SIGTERM'] },
    );
  },

  /** The next signal after clearStop() counts as the first one. */
  async cleared() {
    const coord = new Coordinator();
    coord.stopOnSignals();
    say('ready');
    for (const time of ['first', 'second', 'third']) {
      await coord.waitForStop();
      const { signal } = coord.stopRecord.requester;
      coord.clearStop();
      say(`${time} stop`, { signal });
    }
    process.exitCode = 4;
  },

  /** After the link is disposed of, a signal has the effect that it had before the link. */
  async disposed() {
    const coord = new Coordinator();
    coord.stopOnSignals()[Symbol.dispose]();
    lifeline();
    say('ready', { listeners: process.listenerCount('SIGINT') });
  },

  /** After the link is disposed of, a listener that the program had before is called again. */
  async restored() {
    const coord = new Coordinator();
    let heard = 0;
    process.on('SIGINT', () => {
      say(`heard ${++heard}`, { stopped: coord.shouldStop() });
      if (heard === 3) process.exit(5);
    });
    coord.stopOnSignals()[Symbol.dispose]();
    lifeline();
    say('ready');
  },

  /** Two coordinators are linked and one link is disposed of: the other link still works. */
  async two() {
    const coords = [new Coordinator(), new Coordinator()];
    const links = coords.map((coord) => coord.stopOnSignals(['SIGINT']));
    links[0][Symbol.dispose]();
    say('ready');
    await coords[1].waitForStop();
    say('stopped', { which: coords.map((coord) => coord.shouldStop()) });
  },

  /** A hook closes something until SIGUSR2 comes. */
  async closes() {
    const heard = hearOthers();
    const told = once(process, 'SIGUSR2');
    await served(async () => {
      say('closing');
      await told;
      say('closed', { heard });
    });
  },

  /** A framework handles the signal, too, and sends it to the process again when it is done. */
  async resends(signal) {
    const heard = hearOthers();
    await served(async () => {
      await sleep(550); // later than what belongs to the same press
      process.kill(process.pid, signal);
      say('closed', { heard });
    });
  },

  /** run() has ended, and the program writes until SIGUSR2 comes. `others` listen, or none do. */
  async flushes(others) {
    const heard = others === 'heard by others' ? hearOthers() : [];
    const told = once(process, 'SIGUSR2');
    await served();
    const timer = lifeline();
    say('flushing', { listeners: process.listenerCount('SIGINT') });
    await told;
    say('flushed', { heard });
    clearTimeout(timer);
  },

  /** The program has disposed of the link. */
  async undone() {
    const coord = new Coordinator();
    const link = coord.stopOnSignals();
    say('ready');
    await coord.waitForStop();
    link[Symbol.dispose]();
    lifeline();
    say('flushing');
  },

  async run() {
    const value = await Coordinator.run(
      async (coord) => {
        const task = coord.start(() => coord.waitForStop());
        say('ready');
        await task;
        return coord.stopRecord.requester.signal;
      },
      { stopOnSignals: ['SIGINT'] },
    );
    const { exitCode } = process;
    say('ran', { value, exitCode, listeners: process.listenerCount('SIGINT') });
  },

  /** The program has chosen its exit code before the signal came. */
  async 'run-with-code'(exitCode) {
    process.exitCode = Number(exitCode);
    const stopOnSignals = ['SIGTERM'];
    await Coordinator.run(
      (coord) => {
        say('ready');
        return coord.waitForStop();
      },
      { stopOnSignals },
    );
  },

  async 'run-that-fails'() {
    const body = async (coord) => {
      coord.start(async () => {
        say('ready');
        await coord.waitForStop();
        throw new RangeError('the last batch');
      });
    };
    await Coordinator.run(body, { stopOnSignals: ['SIGTERM'] }).catch(({ message }) => {
      say('rejected', { message });
    });
  },

  /** Node ignores `signal` before there is a link, and after it. */
  async ignored(signal) {
    const link = new Coordinator().stopOnSignals([signal]);
    link[Symbol.dispose]();
    process.kill(process.pid, signal);
    say('alive');
  },

  async worker() {
    const worker = new Worker(new URL(import.meta.url), { argv: ['worker'] });
    await once(worker, 'exit');
  },
};

if (isMainThread) {
  const [story, ...args] = process.argv.slice(2);
  await stories[story](...args);
} else {
  const coord = new Coordinator();
  try {
    coord.stopOnSignals();
  } catch ({ name, code }) {
    say('refused', { name, code, links: coord.explain().links });
  }
}
