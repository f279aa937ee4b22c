// @module-tag nats
/**
 * What is said of calls that wait while the cluster has no worker: a warning, whose ten seconds are
 * fake, and the error of a call whose time is over.
 */

import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { killWorker } from 'allstop/testing';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { errorOf, module as tasks } from '../../support/clusters.ts';
import { turn } from '../../support/gate.ts';
import { NatsServer } from '../../support/nats-server.ts';
import { whyNotReady } from '../../support/not-ready.ts';
import { runScript, saidOf } from '../../support/run-script.ts';

type Warning = Error & { code?: string };

let warnings: Warning[];
const listener = (warning: Warning): void => void warnings.push(warning);

beforeEach(() => {
  warnings = [];
  process.on('warning', listener);
});
afterEach(() => {
  vi.useRealTimers();
  process.off('warning', listener);
});

const useFakeTimers = (): unknown =>
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });

async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  await turn();
  await turn();
}

/** Its import lasts for as long as the word is 0, its function as long as the word is 1. */
const slowModule = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { workerData } from 'node:worker_threads';
    await Atomics.waitAsync(workerData, 0, 0).value;
    export const add = (a, b) => a + b;
    export async function rest() {
      await Atomics.waitAsync(workerData, 0, 1).value;
    }
  `)}`,
);

function set(word: Int32Array, value: number): void {
  Atomics.store(word, 0, value);
  Atomics.notify(word, 0);
}

it('comes once for each time without a worker, when a call has waited', async () => {
  useFakeTimers();
  const word = new Int32Array(new SharedArrayBuffer(4));
  const strategy = new LocalStrategy({ module: slowModule, workers: 1, workerData: word });
  const cluster = new ClusterCoordinator(strategy);
  onTestFinished(() => cluster.close());
  await pass(60_000);
  expect(warnings).toEqual([]); // nothing waits

  const calls = [cluster.run('add', [1, 2]), cluster.run('add', [3, 4])];
  await pass(3_000); // the names are not checked any more: the calls are queued
  await pass(9_000);
  expect(warnings).toEqual([]);
  await pass(1_000);
  expect(warnings).toMatchObject([{ name: 'NoWorkerWarning', code: 'ALLSTOP_NO_WORKER' }]);
  expect(warnings[0]?.message).toBe(
    '2 calls wait, and no worker of the cluster has been ready for 10 s. worker:0 is not ready (starting): the import of the module has not ended. What to do: wait, if the machine is busy; otherwise see what the module awaits when it is imported',
  );
  calls.push(cluster.run('add', [5, 6]));
  await pass(60_000);
  expect(warnings).toHaveLength(1);
  set(word, 1);
  expect(await Promise.all(calls)).toEqual([3, 7, 11]);
  await pass(1_000); // a thread that was sent something is looked at for a moment
  expect(vi.getTimerCount()).toBe(0);

  Atomics.store(word, 0, 0);
  await killWorker(cluster, { worker: 0 });
  const again = cluster.run('add', [7, 8]);
  await pass(9_000);
  expect(warnings).toHaveLength(1);
  await pass(1_000);
  expect(warnings).toHaveLength(2);
  expect(warnings[1]?.message).toMatch(/^1 call waits, and no worker /);
  set(word, 1);
  expect(await again).toBe(15);
});

it('comes also if nothing else happens in the program', async () => {
  // A task of V8's memory reducer would wake the event loop after 8 s.
  const ended = await runScript('waits-for-a-worker', [], { execArgv: ['--no-memory-reducer'] });
  expect(saidOf(ended, 'warning')).toMatchObject({ code: 'ALLSTOP_NO_WORKER' });
});

it.each(['thread', 'process'])('ready() says why no %s may be started', async (isolation) => {
  const { allowedNodeEnvironmentFlags: flags } = process;
  const model = flags.has('--permission') ? '--permission' : '--experimental-permission';
  const permitted = [
    '--allow-fs-read=*',
    ...(flags.has('--allow-addons') ? ['--allow-addons'] : []),
  ];
  const ended = await runScript('not-permitted', [isolation], { execArgv: [model, ...permitted] });
  const { message, engine, tasks: blocked } = saidOf(ended, 'not ready');
  const cause = expect.stringMatching(/^A worker cannot be started: Access to this API .*[^.]$/);
  expect(engine).toEqual({ phase: 'failed', cause });
  expect(blocked).toMatchObject([{ phase: 'lost', cause, remedy: expect.any(String) }]);
  expect(message).not.toContain('..');
});

it('does not come while there is a worker, nor after the cluster is over', async () => {
  useFakeTimers();
  const word = new Int32Array(new SharedArrayBuffer(4));
  const strategy = (): LocalStrategy =>
    new LocalStrategy({ module: slowModule, workers: 1, workerData: word });
  const closed = new ClusterCoordinator(strategy());
  const dropped = errorOf(closed.run('add', [1, 2]));
  await pass(3_000);
  await closed.close();
  await pass(60_000);
  expect((await dropped).message).toBe('The cluster was closed');

  set(word, 1);
  const busy = new ClusterCoordinator(strategy());
  onTestFinished(() => busy.close());
  await busy.ready();
  const calls = [busy.run('rest'), busy.run('rest')];
  await pass(60_000);
  set(word, 2);
  await Promise.all(calls);
  expect(warnings).toEqual([]);
});

async function startOverNats(): Promise<{ cluster: ClusterCoordinator; why: string }> {
  const server = await NatsServer.start();
  onTestFinished(() => server.close());
  const servers = server.address;
  const strategy = new NatsStrategy({ module: tasks, servers, cluster: 'no-worker' });
  const cluster = new ClusterCoordinator(strategy);
  onTestFinished(() => cluster.close());
  await whyNotReady(cluster, ({ engine }) => engine.phase === 'ready');
  const why = `worker:0 is not ready (unregistered): no worker has registered for this task of the cluster 'no-worker' at ${servers}. What to do: npx allstop worker --module ${tasks.pathname} --servers ${servers} --cluster no-worker`;
  return { cluster, why };
}

it('says in the error of a call whose time is over why no worker has taken it', async () => {
  const { cluster, why } = await startOverNats();
  (await cluster.schedule('add', [1, 2])).cancel(); // now the exports of the module are known
  const late = await errorOf(cluster.run('add', [1, 2], { timeoutMs: 50 }));
  expect(late.message).toBe(
    `The function 'add' did not end within 50 ms (options.timeoutMs): it has waited for a worker. ${why}`,
  );
  expect(late.stack).toContain(why);
});

it('says over NATS how to start a worker', async () => {
  const { cluster, why } = await startOverNats();
  useFakeTimers();
  const call = cluster.run('add', [1, 2]);
  call.catch(() => {}); // the cluster is closed at the end
  await pass(3_000);
  await pass(10_000);
  vi.useRealTimers();
  expect(warnings.map(({ message }) => message)).toEqual([
    `1 call waits, and no worker of the cluster has been ready for 10 s. ${why}`,
  ]);
});
