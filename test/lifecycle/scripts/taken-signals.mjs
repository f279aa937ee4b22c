// Signals to which several coordinators are linked, and from which the program removes all
// listeners. argv: the name of a story below, and its argument.
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

const stories = {
  /** removeAllListeners() cuts no link, whether or not the program listens again. */
  async kept(again) {
    const coord = new Coordinator();
    coord.stopOnSignals(['SIGUSR2']);
    process.removeAllListeners('SIGUSR2');
    if (again === 'listening again') process.on('SIGUSR2', () => {});
    say('ready');
    await coord.waitForStop();
    say('stopped', { signal: coord.stopRecord.requester.signal });
    process.exitCode = 4;
  },

  /** A link that is made after removeAllListeners() works, and so does the one from before. */
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

await stories[process.argv[2]](process.argv[3]);
