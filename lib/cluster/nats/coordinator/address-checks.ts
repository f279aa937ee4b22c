/**
 * Whether the hosts of tasks without a worker can be found, and are alive. Nodes do not
 * listen, so a host that refuses a connection is one that answers.
 */

import { Timer } from '../../../base/timer.ts';
import type { Explanation } from '../connection/connection-failure.ts';
import { dial, lookUp, splitAddress } from '../connection/dns-tcp.ts';
import { type ClusterTask, START, UNREGISTERED } from './tasks.ts';

/** Workers that were there before have registered by then, and need no check. */
const FIRST_MS = 250;
const AGAIN_MS = 5_000;
const TIMEOUT_MS = 2_000;
/** A lookup has one of Node's four threads, as long as it takes. */
const MAX_AT_ONCE = 2;
/** Of an address without one: nobody listens there, and a host says so. */
const PORT = 1;

export class AddressChecks {
  readonly #waiting: () => ClusterTask[];
  readonly #onChange: () => void;
  readonly #abort = new AbortController();
  #timer: Timer | undefined;
  #isRunning = false;
  #isWanted = false;

  /** `waiting`: the tasks that nobody has registered for. */
  constructor(waiting: () => ClusterTask[], onChange: () => void) {
    this.#waiting = waiting;
    this.#onChange = onChange;
  }

  /** Checks, again and again, until `stop`. */
  start(): void {
    this.#isWanted = true;
    if (this.#timer === undefined && !this.#isRunning) this.#after(FIRST_MS);
  }

  stop(): void {
    this.#isWanted = false;
    this.#timer?.clear();
    this.#timer = undefined;
  }

  /** For good. */
  close(): void {
    this.stop();
    this.#abort.abort();
  }

  #after(ms: number): void {
    if (!this.#isWanted) return;
    this.#timer = new Timer(ms, () => {
      this.#timer = undefined;
      void this.#round();
    });
  }

  async #round(): Promise<void> {
    this.#isRunning = true;
    const left = this.#waiting().filter(({ address }) => address !== undefined);
    const work = async (): Promise<void> => {
      for (let task = left.shift(); task !== undefined; task = left.shift()) {
        if (this.#abort.signal.aborted) return;
        const { cause, remedy } = await explain(task.address as string, this.#abort.signal);
        const isWaiting = task.session === undefined && task.phase === UNREGISTERED;
        if (isWaiting && task.enter(UNREGISTERED, cause, remedy)) this.#onChange();
      }
    };
    await Promise.all(Array.from({ length: MAX_AT_ONCE }, work));
    this.#isRunning = false;
    this.#after(AGAIN_MS);
  }
}

async function explain(address: string, signal: AbortSignal): Promise<Explanation> {
  const { host, port = PORT } = splitAddress(address);
  try {
    await lookUp(host, TIMEOUT_MS);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return {
      cause: `the name ${host} is unknown (DNS: ${code})`,
      remedy: 'correct it in the ClusterSpec, or the DNS',
    };
  }
  try {
    (await dial(host, port, TIMEOUT_MS, signal)).destroy();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ECONNREFUSED' && code !== 'ECONNRESET') {
      return {
        cause: `the host ${host} does not answer (TCP: ${code}): it is off, or a firewall drops packets`,
        remedy: `start it, or check the network; then ${START}, there`,
      };
    }
  }
  return {
    cause: `the host ${host} answers, but no worker has registered`,
    remedy: `${START} there; if it runs, see its output`,
  };
}
