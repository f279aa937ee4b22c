// Signals to which several coordinators are linked, and from which the program removes all
// listeners. argv: the name of a story below.
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

const stories = {
  /** removeAllListeners() cuts the links of allstop; the next stopOnSignals() links again. */
  async takenBack() {
    const [one, other] = [new Coordinator(), new Coordinator()];
    one.stopOnSignals(['SIGINT']);
    process.removeAllListeners('SIGINT');
    other.stopOnSignals(['SIGINT']);
    say('ready');
    await Promise.all([one.waitForStop(), other.waitForStop()]);
    process.exitCode = 5;
  },

  /** Each link counts for itself: a later link's first signal is not its second one. */
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
