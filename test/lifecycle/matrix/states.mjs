// What a worker can be doing when it dies: one entry a state. The matrix crosses each with every
// death of deaths.mjs.
//
// An entry's name completes "a worker ...". `enter(scene)` runs in the worker and brings it into the
// state. It calls `scene.here()` as its last act before the call that waits, or `scene.point()` at
// the very place where the worker is to die: point() says that the worker is there, and waits. After
// a stop the worker leaves the state and ends by itself. The flags say what the rules must know:
//
// - blocks: the thread is in native code or in Atomics.wait, so only others can end it
// - point: the worker dies in point(), not in the turn of its event loop in which it is told to
// - stopped: the state comes after a stop, which `enter` requests
// - unregistered: the coordinator does not watch the worker, which has only its handle
// - addon: it needs the addon of the tests
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import { BoundedQueue, Coordinator, LooperThread, QueueRunner } from 'allstop';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';

const addonPath = '../../addons/test-addon/build/Release/test_addon.node';
export const testAddon = () => createRequire(import.meta.url)(addonPath);
const nothing = new URL('data:text/javascript,');
const pooled = new URL('pooled.mjs', import.meta.url);

/** Data for a new worker that calls `during` while spawn() clones it. */
function clonedSlowly(during) {
  return {
    get value() {
      during();
      return 0;
    },
  };
}

export const states = {
  'that is idle': {
    enter({ coord, here }) {
      const timer = setInterval(() => {}, 1e6);
      coord.signal.addEventListener('abort', () => clearInterval(timer));
      here();
    },
  },
  'that computes': {
    point: true,
    enter: ({ point }) => point(),
  },
  'in waitForStop()': {
    async enter({ coord, here }) {
      const stopped = coord.waitForStop();
      here();
      await stopped;
    },
  },
  'in waitForStopSync()': {
    blocks: true,
    enter({ coord, here }) {
      here();
      coord.waitForStopSync();
    },
  },
  'in a join() of a coordinator of its own': {
    async enter({ coord, here }) {
      const own = new Coordinator();
      void own.start(() => coord.waitForStop());
      const joined = own.join();
      here();
      await joined;
    },
  },
  'in a join(), registered nowhere': {
    unregistered: true,
    async enter({ coord, here }) {
      const joined = coord.join();
      here();
      await joined;
    },
  },
  'in waitForStopSync(), registered nowhere': {
    blocks: true,
    unregistered: true,
    enter({ coord, here }) {
      here();
      coord.waitForStopSync();
    },
  },
  'with a task': {
    enter({ coord, here }) {
      void coord.start(() => coord.waitForStop());
      here();
    },
  },
  'with a task of a child': {
    enter({ coord, here }) {
      const child = coord.child();
      void child.start(() => child.waitForStop());
      here();
    },
  },
  'in a task': {
    point: true,
    enter: ({ coord, point }) => coord.start(() => point()),
  },
  'in stopOnException()': {
    point: true,
    enter: ({ coord, point }) => coord.stopOnException(() => point()),
  },
  'in the body of run()': {
    point: true,
    enter: ({ point }) => Coordinator.run(() => point()),
  },
  'in run(), which waits for a task': {
    async enter({ coord, here }) {
      const ended = Coordinator.run((own) => {
        void own.start(() => coord.waitForStop());
      });
      here();
      await ended;
    },
  },
  'in the join() of a registered object': {
    point: true,
    enter({ coord, point }) {
      coord.registerThread({ name: 'custom', join: async () => point() });
    },
  },
  'in an abort listener': {
    point: true,
    stopped: true,
    enter({ coord, point }) {
      coord.signal.addEventListener('abort', () => point());
      coord.requestStop();
    },
  },
  'with a hook of onStop()': {
    async enter({ coord, here }) {
      coord.onStop(() => {});
      const stopped = coord.waitForStop();
      here();
      await stopped;
    },
  },
  'in the middle of a hook of onStop()': {
    point: true,
    stopped: true,
    enter({ coord, point }) {
      // In a turn of its own, since the hook's promise would catch what point() throws.
      const toPoint = (resolve) => setImmediate(() => resolve(point()));
      coord.onStop(() => new Promise(toPoint));
      coord.requestStop();
    },
  },
  'whose exitAfterStop() counts': {
    point: true,
    stopped: true,
    enter({ coord, point }) {
      coord.exitAfterStop(1e9);
      coord.requestStop();
      point();
    },
  },
  'that waits for a word of mirror()': {
    blocks: true,
    enter({ coord, here }) {
      const words = new Int32Array(new SharedArrayBuffer(4));
      coord.mirror(words, 0, 1);
      here();
      // In slices: this thread's own event loop, which does not turn, would have to wake it.
      while (Atomics.load(words, 0) === 0) Atomics.wait(words, 0, 0, 50);
    },
  },
  'in dequeue()': {
    async enter({ queues, here }) {
      const item = queues.empty.dequeue();
      here();
      await item;
    },
  },
  'in dequeueSync()': {
    blocks: true,
    enter({ queues, here }) {
      here();
      queues.empty.dequeueSync();
    },
  },
  'in dequeueMany()': {
    async enter({ queues, here }) {
      const items = queues.empty.dequeueMany(8, { min: 2 });
      here();
      await items;
    },
  },
  'in a loop over a queue': {
    async enter({ queues, here }) {
      const items = queues.empty[Symbol.asyncIterator]();
      const next = items.next();
      here();
      await next;
    },
  },
  'in enqueue() to a full queue': {
    async enter({ queues, here }) {
      const there = queues.full.enqueue('too many');
      here();
      await there;
    },
  },
  'in enqueueSync() to a full queue': {
    blocks: true,
    enter({ queues, here }) {
      here();
      queues.full.enqueueSync('too many');
    },
  },
  'in a queue runner that waits for room': {
    enter({ coord, queues, here }) {
      const op = (queue) => {
        const there = queue.enqueue('too many');
        here();
        return there;
      };
      new QueueRunner(queues.full, [op]).createThreads({ coordinator: coord, start: true });
    },
  },
  'in an op of a queue runner': {
    point: true,
    enter({ coord, point }) {
      const queue = new BoundedQueue({ capacity: 1 });
      new QueueRunner(queue, [() => point()]).createThreads({ coordinator: coord, start: true });
    },
  },
  'between two runs of a looper': {
    enter({ coord, here }) {
      LooperThread.loop(coord, 1e6, () => {});
      setImmediate(() => here());
    },
  },
  'in a run of a looper': {
    point: true,
    enter({ coord, point }) {
      let isFirst = true;
      LooperThread.loop(coord, 1e6, () => {
        if (isFirst) point();
        isFirst = false;
      });
    },
  },
  'with a looper in a worker of its own': {
    enter({ coord, here }) {
      LooperThread.loop(coord, 1e6, new URL('data:text/javascript,export default () => {}'));
      here();
    },
  },
  'in a call of a pool of its own': {
    async enter({ coord, here }) {
      const strategy = new LocalStrategy({ module: pooled, workers: 1 });
      const pool = new ClusterCoordinator(strategy, { coordinator: coord });
      const variable = await pool.variable('sum', 0);
      const call = pool.run('untilStopped', [variable], { onProgress: here });
      await call.catch(() => {});
      await pool.close();
    },
  },
  'with a child process': {
    enter({ coord, here }) {
      // It ends with its standard input, so with this worker at the latest.
      const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], {
        stdio: ['pipe', 'ignore', 'ignore'],
      });
      coord.registerThread(child);
      coord.signal.addEventListener('abort', () => child.kill());
      child.once('spawn', () => here());
    },
  },
  'in spawn()': {
    point: true,
    enter({ coord, point }) {
      coord.spawn(nothing, { workerData: clonedSlowly(point) });
    },
  },
  'in spawn(), while a worker of its own is in Coordinator.current()': {
    point: true,
    enter({ coord, point, role, sleeps }) {
      const asking = new Int32Array(new SharedArrayBuffer(12));
      new Worker(new URL('worker.mjs', import.meta.url), { workerData: { ...role, asking } });
      const during = () => {
        Atomics.store(asking, 0, 1);
        Atomics.notify(asking, 0);
        sleeps(asking);
        point();
      };
      coord.spawn(nothing, { workerData: clonedSlowly(during) });
    },
  },
  'that has spawned a worker that waits': {
    enter({ coord, role }) {
      const data = { ...role, state: 'in waitForStopSync()' };
      coord.spawn(new URL('worker.mjs', import.meta.url), { workerData: data });
    },
  },
  'that has adopted a worker that waits': {
    enter({ coord, role }) {
      coord.adoptWorkers();
      const data = { ...role, state: 'in waitForStopSync(), registered nowhere' };
      new Worker(new URL('worker.mjs', import.meta.url), { workerData: data });
    },
  },
  ...(process.platform !== 'win32' && {
    'with a forked process': {
      enter({ coord, here }) {
        const stdio = ['ignore', 'ignore', 'ignore', 'ipc'];
        const child = coord.fork(new URL('forked.mjs', import.meta.url), [], { stdio });
        child.once('message', () => here());
      },
    },
  }),
  'in a native call': {
    addon: true,
    blocks: true,
    enter({ coord, here }) {
      here();
      testAddon().call(coord, 'waitForStop', '1000'); // no slices: its end waits for the call's
    },
  },
  ...(process.platform !== 'win32' && {
    'in a system call under Interruptible': {
      addon: true,
      blocks: true,
      enter({ coord, here }) {
        here();
        testAddon().call(coord, 'poll', '1000'); // its end waits for the call's
      },
    },
  }),
  'with a native thread that waits': {
    addon: true,
    enter({ coord, here }) {
      testAddon().start(coord, 'wait', `of ${process.pid}`);
      void coord.start(() => coord.waitForStop());
      here();
    },
  },
};
