// Signals for which others in the process have installed native handlers, too: further copies of
// the package, or an addon. argv: the name of a story below, and its arguments. A story is sent one
// SIGTERM when it is 'ready', and another one, which ends it, when it is 'stopped'.
import { constants } from 'node:os';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';
import { addon } from './test-addon.mjs';

// Keeps the process alive, and ends it if nothing else has ended it.
setTimeout(() => process.exit(99), 40_000);

function linked(Class = Coordinator) {
  const coord = new Class();
  return { coord, link: coord.stopOnSignals(['SIGTERM']) };
}

/** `order`: the copy that makes each link, as a digit; 1 is this copy, 2 is that of paths[0]. */
async function linksOf(order, paths) {
  const others = await Promise.all(paths.map((path) => import(path)));
  const classes = [Coordinator, ...others.map((other) => other.Coordinator)];
  return [...order].map((copy) => ({ copy, ...linked(classes[copy - 1]) }));
}

/** `isHeard`: the program has a listener, too. */
async function awaitStops(links, isHeard = true) {
  let heard = 0;
  const listener = new Promise((resolve) => {
    process.on('SIGTERM', () => {
      heard += 1;
      resolve();
    });
  });
  say('ready');
  await Promise.all([isHeard && listener, ...links.map(({ coord }) => coord.waitForStop())]);
  say('stopped', { heard, taken: addon.signalsTaken() });
}

const stories = {
  async copies(order, ...paths) {
    await awaitStops(await linksOf(order, paths));
  },

  /** The program has removed the listeners of all copies, which install their handlers again. */
  async removed(order, ...paths) {
    const links = await linksOf(order, paths);
    process.removeAllListeners('SIGTERM');
    await awaitStops(links);
  },

  /** The links of this copy have been disposed of, and each copy makes further ones. */
  async disposed(order, ...paths) {
    const links = await linksOf(order, paths);
    for (const { copy, link } of links) if (copy === '1') link[Symbol.dispose]();
    const left = links.filter(({ copy }) => copy !== '1');
    await awaitStops([...left, linked(), ...left.map(({ coord }) => linked(coord.constructor))]);
  },

  /** All links have been disposed of. */
  async gone(order, ...paths) {
    for (const { link } of await linksOf(order, paths)) link[Symbol.dispose]();
    say('ready');
  },

  /** Between two links an addon takes the signal. 'calls': it calls the handler before its own. */
  async addon(calls) {
    const first = linked();
    const callsPrevious = calls === 'calls';
    addon.takeSignal(constants.signals.SIGTERM, callsPrevious);
    await awaitStops([first, linked()], callsPrevious);
  },

  /** The same, and later the addon puts back the handler that it has found. */
  async restored() {
    const first = linked();
    addon.takeSignal(constants.signals.SIGTERM, true);
    const second = linked();
    addon.giveSignalBack();
    await awaitStops([first, second]);
  },
};

const [story, ...args] = process.argv.slice(2);
await stories[story](...args);
