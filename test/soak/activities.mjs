// What the soak does, all at once: one entry an activity. `open(scene)` prepares it and returns
// `round`, which is called again and again and throws where something was lost or wrong, and `close`,
// which ends everything. A round returns how many things it did.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { BoundedQueue, Coordinator, LooperThread, QueueRunner } from 'allstop';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { startAnswering } from '../lifecycle/matrix/answering.mjs';
import { allCells, runCell } from '../lifecycle/matrix/cell.mjs';

const module = new URL('tasks.mjs', import.meta.url);
const turn = () => new Promise(setImmediate);

async function rejection(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('It did not throw');
}

/** Functions of a cluster: squares, of which one kills its worker now and then. */
function clusterActivity(makeStrategy, deathEvery) {
  return {
    async open(scene) {
      const { strategy, close } = await makeStrategy(scene);
      const cluster = new ClusterCoordinator(strategy);
      await cluster.ready();
      let rounds = 0;
      return {
        async round() {
          const dies = ++rounds % deathEvery === 0;
          const values = [];
          if (dies) values.push(await cluster.schedule('dieOnce', []));
          for (let n = 0; n < 50; n += 1) values.push(await cluster.schedule('square', [n]));
          await cluster.join();
          const results = await cluster.fetch(values);
          const squares = Array.from({ length: 50 }, (_, n) => n * n);
          assert.deepEqual(results, dies ? ['survived', ...squares] : squares);
          return values.length;
        },
        async close() {
          await cluster.close();
          await close?.();
        },
      };
    },
  };
}

export const activities = {
  'children whose signal is read, and dropped': {
    open() {
      const parent = new Coordinator({ name: 'parent' });
      return {
        async round() {
          for (let i = 0; i < 20; i += 1) {
            const child = parent.child();
            assert.equal(child.signal.aborted, false);
          }
          await turn();
          return 20;
        },
        close() {
          parent.requestStop();
        },
      };
    },
  },
  'children that stop, and are joined': {
    open() {
      const parent = new Coordinator({ name: 'parent' });
      return {
        async round() {
          const child = parent.child();
          let seen = 0;
          child.signal.addEventListener('abort', () => {
            seen += 1;
          });
          void child.start((coord) => coord.waitForStop());
          child.requestStop();
          await child.join();
          assert.equal(seen, 1);
          assert.equal(parent.shouldStop(), false);
          return 1;
        },
        close: () => parent.requestStop(),
      };
    },
  },
  'links that stop, and links that are disposed of': {
    open: () => ({
      async round() {
        const resource = new EventEmitter();
        const aborter = new AbortController();
        const coords = [0, 1, 2].map(() => new Coordinator());
        coords[0].stopOnAbort(aborter.signal);
        coords[1].stopOnClose(resource);
        coords[2].stopAfter(1);
        const untouched = new Coordinator();
        for (const link of [
          untouched.stopOnAbort(aborter.signal),
          untouched.stopOnClose(resource),
          untouched.stopAfter(1e6),
        ]) {
          link[Symbol.dispose]();
        }
        aborter.abort();
        resource.emit('close');
        await Promise.all(coords.map((coord) => coord.waitForStop()));
        assert.equal(untouched.shouldStop(), false);
        return 3;
      },
    }),
  },
  'a stop that is cleared at once, and seen by another thread': {
    open() {
      const coord = new Coordinator({ name: 'cleared' });
      const { worker, ask } = startAnswering(new URL('watcher.mjs', import.meta.url));
      return {
        async round() {
          await ask('attach', coord.handle);
          const seen = ask('seen', coord.handle);
          await ask('is waiting');
          coord.requestStop();
          coord.clearStop();
          assert.equal(await seen, true);
          return 1;
        },
        close: () => worker.terminate(),
      };
    },
  },
  'queues, with a producer in another thread': {
    open() {
      const { worker, ask } = startAnswering(new URL('watcher.mjs', import.meta.url));
      return {
        async round() {
          const coordinator = new Coordinator();
          const queue = new BoundedQueue({ capacity: 8, coordinator });
          const produced = ask('produce', queue.handle);
          const seen = Array.from({ length: 400 }, () => 0);
          const consume = async () => {
            for await (const item of queue) seen[item] += 1;
          };
          const consumers = [consume(), consume()];
          assert.equal(await produced, 400);
          queue.close();
          await Promise.all(consumers);
          assert.ok(seen.every((times) => times === 1));
          return 400;
        },
        close: () => worker.terminate(),
      };
    },
  },
  'queue runners': {
    open: () => ({
      async round() {
        const coordinator = new Coordinator();
        const queue = new BoundedQueue({ capacity: 4, coordinator });
        let next = 0;
        const op = async () => {
          if (next === 100) coordinator.requestStop();
          else await queue.enqueue(next++);
        };
        new QueueRunner(queue, [op]).createThreads({ coordinator, start: true });
        let wanted = 0;
        for await (const item of queue) assert.equal(item, wanted++);
        await coordinator.join();
        assert.equal(wanted, 100);
        return 100;
      },
    }),
  },
  loopers: {
    open: () => ({
      async round() {
        const coord = new Coordinator();
        let runs = 0;
        LooperThread.loop(coord, 1, () => {
          runs += 1;
          if (runs === 5) coord.requestStop();
        });
        await coord.join();
        assert.equal(runs, 5);
        return 5;
      },
    }),
  },
  'joins that leave stragglers behind': {
    open: () => ({
      async round() {
        const coord = new Coordinator();
        let release;
        const held = new Promise((resolve) => {
          release = resolve;
        });
        const ended = coord.start(() => held, { name: 'straggler' });
        coord.requestStop();
        const error = await rejection(coord.join({ stopGracePeriodMs: 5 }));
        assert.equal(error.code, 'ERR_ALLSTOP_STRAGGLERS');
        release();
        await ended;
        assert.deepEqual(coord.threads, []);
        return 1;
      },
    }),
  },
  'workers that end, throw, are terminated, run out of memory': {
    open({ random }) {
      const cells = allCells().filter(({ name }) => !name.includes('native'));
      const url = new URL('../lifecycle/matrix/bystander.mjs', import.meta.url);
      const { worker, ask } = startAnswering(url);
      return {
        async round() {
          const { name, state, death } = cells[Math.floor(random() * cells.length)];
          const wrong = await runCell(state, death, ask);
          assert.deepEqual(wrong, [], name);
          return 1;
        },
        close: () => worker.terminate(),
      };
    },
  },
  'child processes': {
    open: () => ({
      async round() {
        const coord = new Coordinator();
        const child = spawn(process.execPath, ['-e', 'process.exit(3)'], { stdio: 'ignore' });
        coord.registerThread(child);
        const error = await rejection(coord.join());
        assert.equal(error.exitCode, 3);
        return 1;
      },
    }),
  },
  'a cluster of threads': clusterActivity(
    () => ({ strategy: new LocalStrategy({ module, workers: 2 }) }),
    20,
  ),
  'a cluster of processes': clusterActivity(
    () => ({ strategy: new LocalStrategy({ module, workers: 1, isolation: 'process' }) }),
    20,
  ),
  'a cluster on NATS': clusterActivity(async ({ nats }) => {
    const { NatsStrategy } = await import('allstop/nats');
    const { servers, close } = await nats(module);
    return { strategy: new NatsStrategy({ module, servers, cluster: 'soak' }), close };
  }, Number.POSITIVE_INFINITY),
};
