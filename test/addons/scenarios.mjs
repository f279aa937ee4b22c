// Runs each scenario in its own process: a crash or a hang fails only that scenario, and each
// scenario decides which environment loads the addon first.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';

const MOST_MS = 30_000;

/**
 * Runs all scenarios; in a worker, the function of that worker instead.
 * @param workers the functions of the workers, by the `role` in their workerData
 */
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

/** Turns the event loop until `isSo()` is true: native threads send no event to wait for. */
export async function until(isSo) {
  while (!isSo()) await new Promise(setImmediate);
}

/** Starts a worker that only gets the handle: the coordinator does not wait for this worker. */
export function startWorker(url, role, coord) {
  return new Worker(new URL(url), { workerData: { role, handle: coord.handle } });
}

/** The coordinator in a worker, started by spawn() or by startWorker(). */
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

/** Passes values that are no Coordinator to `take`, which hands them to allstop_from_napi. */
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
