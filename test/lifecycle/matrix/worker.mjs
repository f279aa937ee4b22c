// The worker of a cell: enters its state, and dies as it is told.
import { parentPort, workerData as role } from 'node:worker_threads';
import { BoundedQueue, Coordinator } from 'allstop';
import { states } from './states.mjs';
import { COMMAND, COMMANDS, HERE, isAsleep, noteThread, raise } from './words.mjs';

const commands = {
  return() {},
  throw() {
    throw Object.assign(new TypeError('the true cause'), { code: 'E_CELL', field: [1n] });
  },
  reject() {
    void Promise.reject(Object.assign(new TypeError('the true cause'), { code: 'E_CELL' }));
  },
  exit: () => process.exit(3),
  'run out of memory'() {
    for (const kept = []; ; ) kept.push(Array.from({ length: 100_000 }, () => kept.length));
  },
};

/** @returns {void} while the other worker sleeps in its Coordinator.current() */
function sleeps(asking) {
  Atomics.wait(asking, 1, 0);
  while (!isAsleep(asking));
}

if (role.asking !== undefined) {
  Atomics.wait(role.asking, 0, 0);
  noteThread(role.asking);
  raise(role.asking, 1);
  Coordinator.current();
} else {
  const { words, handle } = role;
  const here = () => {
    noteThread(words);
    raise(words, HERE);
  };
  const state = states[role.state];
  const scene = {
    role,
    coord: state.unregistered ? Coordinator.attach(handle) : Coordinator.current(),
    queues: {
      empty: BoundedQueue.attach(role.queues.empty),
      full: BoundedQueue.attach(role.queues.full),
    },
    here,
    point() {
      here();
      Atomics.wait(words, COMMAND, 0);
      commands[COMMANDS[Atomics.load(words, COMMAND)]]();
    },
    sleeps,
  };
  parentPort.on('message', (command) => commands[command]()).unref();
  await state.enter(scene);
}
