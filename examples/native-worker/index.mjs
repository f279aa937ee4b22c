// The JavaScript side of the pool. It checks the arguments, so that the C++ side need not do it.
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';

const addon = createRequire(import.meta.url)('./build/Release/native_worker.node');

export class WorkerPool {
  #pool;

  constructor(coord, { threads = availableParallelism() } = {}) {
    if (!Number.isInteger(threads) || threads < 1 || threads > 256) {
      throw new RangeError('threads must be an integer from 1 to 256');
    }
    this.#pool = new addon.Pool(coord, threads);
  }

  push(limit) {
    if (!Number.isSafeInteger(limit)) throw new TypeError('limit must be an integer');
    this.#pool.push(limit);
  }

  close() {
    this.#pool.close();
  }

  get stats() {
    return this.#pool.stats();
  }
}
