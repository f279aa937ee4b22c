/**
 * The child process of one case. Its main thread starts the workers, ends one after the other, and
 * lets events come after each end; it never loads the addon itself. A worker executes this file, too:
 * it loads the addon, runs the exercise, and ends when and how it is told.
 */

import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import {
  isMainThread,
  type MessagePort,
  parentPort,
  Worker,
  workerData,
} from 'node:worker_threads';
import { messageOf } from '../../base/thrown-value.ts';
import { tellParent } from '../base/child-output.ts';
import type { Failed, Order, Told } from './run-case.ts';

/** What each worker is given. `isLater`: it runs `afterwards` of the script, without the addon. */
type WorkerOrder = Order & { isLater?: true };

/** What a worker tells the main thread: that it has got as far as the order says, or why not. */
type FromWorker = { reached: true; hasAfterwards: boolean } | Failed;

/** The message of the error that ends a worker by an exception. */
const DELIBERATE = 'allstop check-addon ends this worker by an exception';

// The main thread.

const tell = (told: Told): void => tellParent(told);

function fail(why: Failed): never {
  tell(why);
  process.exit(1);
}

async function runWorkers(order: Order): Promise<void> {
  // The parent has ended: so does this process, though a thread may be blocked in native code.
  process.stdin.once('end', () => process.kill(process.pid, 'SIGKILL')).resume();
  tell({ step: 'during the exercise' });
  const exercisers = Array.from({ length: order.workers }, () => startWorker(order));
  const [hasAfterwards] = await Promise.all(exercisers.map(({ reached }) => reached));
  for (const [index, exerciser] of exercisers.entries()) {
    const name = order.workers === 1 ? 'the worker' : `worker ${index + 1}`;
    tell({ step: `while ${name} was ending` });
    await exerciser.end();
    tell({ step: `after ${name} had ended` });
    if (hasAfterwards) await startWorker({ ...order, ending: 'exits', isLater: true }).reached;
    await sleep(order.afterMs);
    if (order.ending !== 'used again' || index > 0) continue;
    tell({ step: 'while another worker was using the addon' });
    const another = startWorker(order);
    await another.reached;
    await another.end();
  }
  tell({ step: 'at the end of the process' });
  tell({ done: true });
  process.stdin.destroy(); // would keep this process alive
}

/** `reached`: when the worker has got as far as the order says: whether there are `afterwards`. */
function startWorker(order: WorkerOrder): { reached: Promise<boolean>; end(): Promise<void> } {
  const worker = new Worker(new URL(import.meta.url), { workerData: order });
  worker.on('error', (error: unknown) => {
    const failed = messageOf(error);
    if (failed !== DELIBERATE) fail({ failed });
  });
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  let isReached = false;
  const reached = new Promise<boolean>((resolve) => {
    worker.on('message', (told: FromWorker) => {
      if ('failed' in told) fail(told);
      isReached = true;
      resolve(told.hasAfterwards);
    });
  });
  worker.once('exit', () => {
    if (!isReached) fail({ failed: 'the worker ended by itself during the exercise' });
  });
  const end = async (): Promise<void> => {
    const isTerminated = order.ending === 'terminated' || order.ending === 'used again';
    if (isTerminated) await worker.terminate();
    else worker.postMessage('end');
    await ended;
  };
  return { reached, end };
}

// A worker.

/** The script's exports; `afterwards` brings about events for native threads that are left. */
type Script = { default?: (addon: unknown) => unknown; afterwards?: () => unknown };

/** The names that the addon exports. Undefined until it is loaded. */
let exports: readonly string[] | undefined;

function load(path: string): unknown {
  try {
    const addon: unknown = createRequire(import.meta.url)(path);
    exports = Object.keys(addon ?? {});
    return addon;
  } catch (error) {
    throw new Error(`the addon cannot be loaded: ${messageOf(error)}`, { cause: error });
  }
}

/** `value` as the addon gets it: a function throws after each call. */
const throwing = (value: unknown): unknown =>
  typeof value !== 'function'
    ? value
    : function (this: unknown, ...args: unknown[]): never {
        Reflect.apply(value, this, args);
        throw new Error(DELIBERATE);
      };

/** The addon, whose functions and classes get functions that throw. */
function withThrowing(addon: unknown): unknown {
  const wrapped = Object.entries(addon ?? {}).map(([name, value]: [string, unknown]) => {
    if (typeof value !== 'function') return [name, value];
    const proxy = new Proxy(value, {
      apply: (fn, self, args: unknown[]) => Reflect.apply(fn, self, args.map(throwing)),
      construct: (fn, args: unknown[]) => Reflect.construct(fn, args.map(throwing)),
    });
    return [name, proxy];
  });
  return Object.fromEntries(wrapped);
}

async function exercise(order: WorkerOrder, tellMain: (told: FromWorker) => void): Promise<void> {
  const { phase, script, ending, isLater } = order;
  const { default: use, afterwards }: Script = await import(pathToFileURL(script).href);
  const hasAfterwards = typeof afterwards === 'function';
  const reached = (): void => tellMain({ reached: true, hasAfterwards });
  if (isLater) {
    await afterwards?.();
    return reached();
  }
  if (typeof use !== 'function') {
    throw new Error(`${script} must export a function: export default async (addon) => {}`);
  }
  const addon = load(order.addon);
  if (phase === 'loaded') return reached();
  const used = use(ending === 'callback throws' ? withThrowing(addon) : addon);
  if (phase === 'running') reached();
  await used;
  if (phase === 'done') reached();
}

async function beWorker(order: WorkerOrder, port: MessagePort): Promise<void> {
  const tellMain = (told: FromWorker): void => port.postMessage(told);
  // Keeps this worker alive, until it is told to end.
  port.on('message', () => {
    if (order.ending === 'exits') process.exit(0);
    throw new Error(DELIBERATE);
  });
  try {
    await exercise(order, tellMain);
    if (order.isLater) port.close(); // this worker ends by itself
  } catch (error) {
    const failed = messageOf(error);
    if (failed !== DELIBERATE) tellMain({ failed, exports });
    else tellMain({ reached: true, hasAfterwards: false });
  }
}

if (isMainThread) await runWorkers(JSON.parse(process.argv[2] ?? ''));
else await beWorker(workerData, parentPort as MessagePort);
