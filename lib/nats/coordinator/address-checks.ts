/**
 * Checks the hosts that a ClusterSpec names for tasks no node has registered for: whether the
 * name can be resolved (DNS), and whether the host answers (TCP). Nodes do not listen, so a host
 * that refuses the connection counts as answering.
 */

import { codeOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { type Explanation, unregistered } from '../../errors/phases.ts';
import { dial, lookUp, splitAddress } from '../connection/dns-tcp.ts';
import type { ClusterTask } from './tasks.ts';

/** Delay of the first round: nodes that run already have registered by then, and need no check. */
const FIRST_MS = 250;
const AGAIN_MS = 5_000;
const TIMEOUT_MS = 2_000;
/** A DNS lookup holds one of libuv's four threads until it ends: the program needs the others. */
const MAX_AT_ONCE = 2;
/** The port for an address that has none: a host that is up refuses connections to port 1. */
const PORT = 1;

export interface AddressChecksListener {
  /** The tasks that no node has registered for. */
  unregisteredTasks(): ClusterTask[];
  /** The cause of a task has changed. */
  onChange(): void;
}

export class AddressChecks {
  readonly #listener: AddressChecksListener;
  readonly #abort = new AbortController();
  #timer: Timer | undefined;
  #isRunning = false;
  #isWanted = false;

  constructor(listener: AddressChecksListener) {
    this.#listener = listener;
  }

  /** Starts rounds of checks, every AGAIN_MS, until `stop`. */
  start(): void {
    this.#isWanted = true;
    if (this.#timer === undefined && !this.#isRunning) this.#after(FIRST_MS);
  }

  /** Starts no more rounds. A round that is running goes on. `start` can be called again. */
  stop(): void {
    this.#isWanted = false;
    this.#timer?.clear();
    this.#timer = undefined;
  }

  /** Ends the connections of a running round, too. `start` must not be called any more. */
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
    const tasks = this.#listener.unregisteredTasks();
    const left = tasks.filter(({ address }) => address !== undefined);
    const work = async (): Promise<void> => {
      for (let task = left.shift(); task !== undefined; task = left.shift()) {
        if (this.#abort.signal.aborted) return;
        const { cause, remedy } = await explain(task, this.#abort.signal);
        // A node may have registered for the task during the check.
        const isWaiting = task.session === undefined && task.phase === 'unregistered';
        if (isWaiting && task.enter('unregistered', cause, remedy)) this.#listener.onChange();
      }
    };
    await Promise.all(Array.from({ length: MAX_AT_ONCE }, work));
    this.#isRunning = false;
    this.#after(AGAIN_MS);
  }
}

/** @param task - has an address */
async function explain(task: ClusterTask, signal: AbortSignal): Promise<Explanation> {
  const { host, port = PORT } = splitAddress(task.address as string);
  try {
    await lookUp(host, TIMEOUT_MS);
  } catch (error) {
    return unregistered.hostUnknown(host, String(codeOf(error)));
  }
  try {
    (await dial(host, port, TIMEOUT_MS, signal)).destroy();
  } catch (error) {
    const code = String(codeOf(error));
    const isAlive = code === 'ECONNREFUSED' || code === 'ECONNRESET';
    if (!isAlive) return unregistered.hostSilent(host, code, task.workerStart);
  }
  return unregistered.hostAnswers(host, task.workerStart);
}
