// Signals that several coordinators are linked to, and that a program takes back.
// argv: a story below.
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

const stories = {
  /** removeAllListeners() takes the signal from us; the next link takes it again. */
  async takenBack() {
    const [one, other] = [new Coordinator(), new Coordinator()];
    one.stopOnSignals(['SIGINT']);
    process.removeAllListeners('SIGINT');
    other.stopOnSignals(['SIGINT']);
    say('ready');
    await Promise.all([one.waitForStop(), other.waitForStop()]);
    process.exitCode = 5;
  },

  /** The first signal of one link is not the second of another. */
  async apart() {
    const [one, other] = [new Coordinator(), new Coordinator()];
    one.stopOnSignals(['SIGUSR2']);
    other.stopOnSignals(['SIGTERM']);
    say('ready');
    await one.waitForStop();
    say('one stopped');
    await other.waitForStop();
    process.exitCode = 6;
  },
};

await stories[process.argv[2]]();
