// Runs each scenario in a process of its own, so that a crash or a hang fails that one,
// and so that each decides which environment is the first to load an addon.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';

const MOST_MS = 30_000;

/** `workers`: what a worker does, by the `role` of its workerData. */
export async function run(url, scenarios, workers) {
  if (!isMainThread) {
    await workers[workerData.role]();
    return;
  }
  const [, , chosen] = process.argv;
  if (chosen !== undefined) {
    await scenarios[chosen]();
    return;
  }
  for (const name of Object.keys(scenarios)) {
    const args = ['--expose-gc', fileURLToPath(url), name];
    const { status, signal } = spawnSync(process.execPath, args, {
      stdio: 'inherit',
      timeout: MOST_MS,
      killSignal: 'SIGKILL',
    });
    assert.deepEqual({ name, status, signal }, { name, status: 0, signal: null });
    console.log(`  ok: ${name}`);
  }
}

/** Native threads have no event to tell us of: turns of the event loop until it is so. */
export async function until(isSo) {
  while (!isSo()) await new Promise(setImmediate);
}

/** A worker that has the handle only: the coordinator does not wait for it. */
export function startWorker(url, role, coord) {
  return new Worker(new URL(url), { workerData: { role, handle: coord.handle } });
}

/** The coordinator of a worker, however it was started. */
export function sharedCoordinator() {
  return Coordinator.current() ?? Coordinator.attach(workerData.handle);
}

export async function exitCode(worker) {
  const [code] = await once(worker, 'exit');
  return code;
}

export function aliveThreads(coord) {
  return coord.threads
    .filter(({ kind, alive }) => kind === 'native' && alive)
    .map(({ name }) => name)
    .toSorted();
}

/** `take` hands its argument to allstop_from_napi. */
export function refusesWhatIsNoCoordinator(take) {
  const coord = new Coordinator();
  const others = [
    {},
    null,
    undefined,
    1,
    10n,
    'coordinator',
    true,
    Symbol('coordinator'),
    [],
    () => {},
    new Proxy(coord, {}),
    Object.create(coord),
    Object.create(Coordinator.prototype),
    coord.handle,
    Coordinator,
    globalThis,
  ];
  for (const other of others) {
    assert.throws(() => take(other), { name: 'TypeError', code: 'ERR_ALLSTOP_INVALID_HANDLE' });
  }
  assert.deepEqual(coord.threads, []);
}
