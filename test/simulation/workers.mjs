/**
 * Worker threads as places of this process: the package's own code runs in them, over ports whose
 * messages take virtual time. `install` has to be called before the package is loaded.
 */

import { EventEmitter } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import workerThreads from 'node:worker_threads';
import { tell } from './history.mjs';
import { Place } from './time.mjs';

const START_MS = 20;
const MESSAGE_MS = 0.05;
const FIRST_ID = 1_000_000;

/** By the ids of threads: the coordinator that the thread was started with. */
const coordinators = new Map();
const threads = new Map();

let time;
let entry;
let ids = FIRST_ID;

/** The simulation is over. */
export function threadsEnd() {
  ids = FIRST_ID;
  threads.clear();
  coordinators.clear();
}

/** What each thread that lives knows of a stop, by its name. */
export const stopsOf = () =>
  Object.fromEntries(
    [...threads]
      .filter(([place]) => !place.isDead)
      .map(([{ name }, { coordinator }]) => [name, coordinator?.stopRecord?.id ?? 'none']),
  );

/** One end of the channel between a thread and the one that has started it. */
class Port extends EventEmitter {
  #send;

  constructor(send) {
    super();
    this.#send = send;
  }

  postMessage(value, transfer) {
    this.#send(structuredClone(value, { transfer: transfer ?? [] }));
  }

  ref() {}
  unref() {}
  close() {}
}

class SimulatedWorker extends EventEmitter {
  threadId;
  #place;
  #port;
  #above = time.place;
  #isOver = false;
  /** What has come before the thread listens. */
  #early = [];

  constructor(_url, { workerData, name }) {
    super();
    ids += 1;
    this.threadId = ids;
    this.#place = new Place(time, `${this.#above.name}/${name}#${ids - FIRST_ID}`, {
      parent: this.#above,
    });
    threads.set(this.#place, this);
    this.#place.onError = (error) => this.#die(error);
    this.#port = new Port((message) => this.#tell('message', message));
    const settings = structuredClone(workerData);
    time.later(START_MS * (0.5 + this.#place.random()), () => this.#start(settings), this.#place);
  }

  #start(settings) {
    // What a thread changes in its own process would be changed here for all.
    const streams = [process.stdout, process.stderr];
    const before = streams.map(({ write, _writev }) => ({ write, _writev }));
    const { parentPort } = workerThreads;
    const exits = process.listeners('exit');
    workerThreads.parentPort = this.#port;
    syncBuiltinESMExports();
    entry.run(settings).catch((error) => this.#die(error));
    const early = this.#early;
    this.#early = undefined;
    for (const arrive of early) arrive();
    workerThreads.parentPort = parentPort;
    syncBuiltinESMExports();
    for (const [at, stream] of streams.entries()) Object.assign(stream, before[at]);
    for (const each of process.listeners('exit')) {
      if (!exits.includes(each)) process.off('exit', each);
    }
  }

  get coordinator() {
    return coordinators.get(this.threadId);
  }

  #tell(event, value) {
    time.later(MESSAGE_MS, () => this.emit(event, value), this.#above);
  }

  postMessage(value, transfer) {
    const message = structuredClone(value, { transfer: transfer ?? [] });
    const arrive = () => {
      if (this.#early === undefined) this.#port.emit('message', message);
      else this.#early.push(arrive);
    };
    time.later(MESSAGE_MS, arrive, this.#place);
  }

  /** The thread ends of an error. */
  #die(error) {
    if (this.#isOver) return;
    this.#tell('error', error);
    this.#end(1);
  }

  #end(exitCode) {
    if (this.#isOver) return;
    this.#isOver = true;
    threads.delete(this.#place);
    tell('thread ends', { name: this.#place.name });
    this.#place.kill();
    this.#tell('exit', exitCode);
  }

  terminate() {
    this.#end(1);
    return Promise.resolve(1);
  }

  ref() {}
  unref() {}

  get stdout() {
    return null;
  }

  get stderr() {
    return null;
  }
}

/** From now on a Worker is a place of this process. */
export function install(virtualTime) {
  time = virtualTime;
  workerThreads.Worker = SimulatedWorker;
  syncBuiltinESMExports();
}

/** Ends the thread in which the caller runs, as `process.exit()` does there. */
export function exitThread() {
  threads.get(time.place)?.terminate();
}

/** Connects threads with the package (package.ts), which is loaded by now. */
export function serve({ runClusterThread, binding, Attachment, Coordinator, callsAreAsked }) {
  callsAreAsked(); // attempts of all threads share this process
  entry = { run: runClusterThread };
  const native = binding();
  const { setSpawned, forgetSpawned } = native;
  // The native part knows threads by their ids; those of this process have one in common.
  native.setSpawned = (attachment, id, name) => {
    if (id > FIRST_ID) coordinators.set(id, Attachment.of(attachment).coordinator);
    else if (id !== workerThreads.threadId) setSpawned.call(native, attachment, id, name);
  };
  native.forgetSpawned = (id) => {
    if (!coordinators.delete(id)) forgetSpawned.call(native, id);
  };
  const { current } = Coordinator;
  Coordinator.current = () => threads.get(time.place)?.coordinator ?? current.call(Coordinator);
}
