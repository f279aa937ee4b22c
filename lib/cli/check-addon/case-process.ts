/**
 * The child process of one case: its main thread starts the workers, ends one after the other, and
 * lets events come after each end. It never loads the addon itself.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../base/thrown-value.ts';
import { tellParent } from '../base/child-output.ts';
import { DELIBERATE, type Failed, type FromWorker, type Order, type Told } from './run-case.ts';

const order: Order = JSON.parse(process.argv[2] ?? '');

const tell = (told: Told): void => tellParent(told);

// The parent has ended: so does this process, though a thread may be blocked in native code.
process.stdin.once('end', () => process.kill(process.pid, 'SIGKILL')).resume();

function fail(why: Failed): never {
  tell(why);
  process.exit(1);
}

/** A worker that uses the addon, or with `afterwards` runs that function of the script. */
class Exerciser {
  readonly #worker: Worker;
  readonly #ended: Promise<void>;
  /** Resolves when the worker has got as far as the order says: whether there are `afterwards`. */
  readonly reached: Promise<boolean>;

  constructor(workerData: Order | (Order & { afterwards: true })) {
    this.#worker = new Worker(order.worker, { workerData });
    this.#worker.on('error', (error: unknown) => {
      const failed = messageOf(error);
      if (failed !== DELIBERATE) fail({ failed });
    });
    this.#ended = new Promise((resolve) => this.#worker.once('exit', () => resolve()));
    let isReached = false;
    this.reached = new Promise((resolve) => {
      this.#worker.on('message', (told: FromWorker) => {
        if ('failed' in told) fail(told);
        isReached = true;
        resolve(told.hasAfterwards);
      });
    });
    this.#worker.once('exit', () => {
      if (!isReached) fail({ failed: 'the worker ended by itself during the exercise' });
    });
  }

  async end(): Promise<void> {
    if (order.ending === 'terminated' || order.ending === 'used again')
      await this.#worker.terminate();
    else this.#worker.postMessage('end');
    await this.#ended;
  }
}

async function letEventsCome(hasAfterwards: boolean): Promise<void> {
  if (hasAfterwards) {
    const later = new Exerciser({ ...order, ending: 'exits', afterwards: true });
    await later.reached;
  }
  await sleep(order.afterMs);
}

tell({ step: 'during the exercise' });
const exercisers = Array.from({ length: order.workers }, () => new Exerciser(order));
const [hasAfterwards] = await Promise.all(exercisers.map(({ reached }) => reached));
for (const [index, exerciser] of exercisers.entries()) {
  const name = order.workers === 1 ? 'the worker' : `worker ${index + 1}`;
  tell({ step: `while ${name} was ending` });
  await exerciser.end();
  tell({ step: `after ${name} had ended` });
  await letEventsCome(hasAfterwards as boolean);
  if (order.ending !== 'used again' || index > 0) continue;
  tell({ step: 'while another worker was using the addon' });
  const another = new Exerciser(order);
  await another.reached;
  await another.end();
}
tell({ step: 'at the end of the process' });
tell({ done: true });
process.stdin.destroy(); // would keep this process alive
