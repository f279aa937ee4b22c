/**
 * Virtual time, and the places of the simulation (a program, a worker's process, a thread in it). What
 * a place starts belongs to it: its timers, and what comes to it. A place that is dead does nothing any
 * more, one that is frozen does it later. Between two events all promises of the process have settled.
 *
 * `install` puts the globals by which a program knows time and chance under the seed's control. It has
 * to be called before the package is loaded, which keeps some of them.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import crypto, { createHash } from 'node:crypto';
import dns from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import perfHooks from 'node:perf_hooks';

const realImmediate = setImmediate;
const EPOCH = Date.UTC(2030, 0, 1);
const LONGEST_MS = 2 ** 31 - 1;

/** Numbers from 0 to 1 by a seed (mulberry32). */
export function randomOf(seed) {
  let state = createHash('sha256').update(seed).digest().readUInt32LE(0);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Events in the order of their times; of the same time in the order in which they were added. */
class Heap {
  #events = [];

  get size() {
    return this.#events.length;
  }

  push(event) {
    const events = this.#events;
    let at = events.length;
    events.push(event);
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (isBefore(events[above], event)) break;
      events[at] = events[above];
      at = above;
    }
    events[at] = event;
  }

  pop() {
    const events = this.#events;
    const [first] = events;
    const last = events.pop();
    if (events.length === 0) return first;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= events.length) break;
      if (below + 1 < events.length && isBefore(events[below + 1], events[below])) below += 1;
      if (isBefore(last, events[below])) break;
      events[at] = events[below];
      at = below;
    }
    events[at] = last;
    return first;
  }
}

const isBefore = (one, other) => one.at < other.at || (one.at === other.at && one.no < other.no);

const places = new AsyncLocalStorage();

export class Place {
  name;
  host;
  pid;
  random;
  /** How far the clock of this machine is off. */
  clockOffMs = 0;
  /** Called with an error that nobody has caught. */
  onError;
  #time;
  #parent;
  #isDead = false;
  #held;
  #onDeath = new Set();

  constructor(time, name, { parent, host = parent?.host ?? name, pid = parent?.pid ?? 1 } = {}) {
    this.pid = pid;
    this.#time = time;
    this.name = name;
    this.#parent = parent;
    this.host = host;
    this.random = randomOf(`${time.seed}/${name}`);
  }

  get isDead() {
    return this.#isDead || this.#parent?.isDead === true;
  }

  /** The frozen place, this one or one that it lies in. */
  get #frozen() {
    return this.#held !== undefined ? this : this.#parent?.#frozen;
  }

  isIn(place) {
    return this === place || this.#parent?.isIn(place) === true;
  }

  get machineClockOffMs() {
    return this.#parent?.machineClockOffMs ?? this.clockOffMs;
  }

  /** Runs `fn` here, now; later if the place is frozen; never if it is dead. */
  enter(fn) {
    if (this.isDead) return;
    const frozen = this.#frozen;
    if (frozen !== undefined) {
      frozen.#held.push(() => this.enter(fn));
      return;
    }
    places.run(this, () => {
      try {
        fn();
      } catch (error) {
        this.#fail(error);
      }
    });
  }

  #fail(error) {
    if (this.onError !== undefined) this.onError(error);
    else if (this.#parent !== undefined) this.#parent.#fail(error);
    else throw error;
  }

  /** What runs here has died. */
  kill() {
    if (this.#isDead) return;
    this.#isDead = true;
    for (const tell of this.#onDeath) tell();
  }

  /** @returns what takes the call back */
  onDeath(tell) {
    this.#onDeath.add(tell);
    const above = this.#parent?.onDeath(tell);
    return () => {
      this.#onDeath.delete(tell);
      above?.();
    };
  }

  /** Nothing happens here until `thaw`, as in a process that was stopped. */
  freeze() {
    this.#held ??= [];
  }

  thaw() {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const each of held) this.#time.later(0, each);
  }
}

/** What `setTimeout` returns. */
class VirtualTimeout {
  #time;
  #fire;
  #ms;
  #isRepeated;
  #cancel;

  constructor(time, fire, ms, isRepeated) {
    this.#time = time;
    this.#fire = fire;
    this.#ms = ms >= 1 && ms <= LONGEST_MS ? ms : 1;
    this.#isRepeated = isRepeated;
    this.refresh();
  }

  refresh() {
    this.#cancel?.();
    this.#cancel = this.#time.here(this.#ms, () => {
      if (this.#isRepeated) this.refresh();
      this.#fire();
    });
    return this;
  }

  close() {
    this.#cancel?.();
    this.#isRepeated = false;
    return this;
  }

  ref() {
    return this;
  }

  unref() {
    return this;
  }

  hasRef() {
    return true;
  }

  [Symbol.dispose]() {
    this.close();
  }
}

export class VirtualTime {
  seed;
  /** How many events there were. */
  events = 0;
  #now = 0;
  #no = 0;
  #heap = new Heap();
  #root = new Place(this, 'world');

  /** Begins anew, at 0. */
  reset(seed) {
    this.seed = seed;
    this.events = 0;
    this.#now = 0;
    this.#no = 0;
    this.#heap = new Heap();
    this.#root = new Place(this, 'world');
  }

  /** Milliseconds since the beginning. */
  get ms() {
    return this.#now;
  }

  /** The place in which the caller runs. */
  get place() {
    return places.getStore() ?? this.#root;
  }

  /** Calls `fn` after `ms` milliseconds, in `place`. @returns what cancels the call */
  later(ms, fn, place = this.#root) {
    this.#no += 1;
    const event = { at: this.#now + Math.max(0, ms), no: this.#no, fn, place };
    this.#heap.push(event);
    return () => {
      event.fn = undefined;
    };
  }

  /** As `later`, in the caller's place. */
  here(ms, fn) {
    return this.later(ms, fn, this.place);
  }

  /** The clock of the servers and the network (network.mjs). */
  get clock() {
    return {
      now: () => EPOCH + this.#now,
      later: (ms, fn) => this.later(ms, fn),
      bind: (fn) => {
        const { place } = this;
        return (...args) => place.enter(() => fn(...args));
      },
      onDeath: (tell) => this.place.onDeath(tell),
    };
  }

  /** Lets time go on until `promise` has settled, or `mostMs` are over. */
  async run(promise, mostMs) {
    let outcome;
    promise.then(
      (value) => {
        outcome = { value };
      },
      (error) => {
        outcome = { error };
      },
    );
    await new Promise((resolve, reject) => {
      const step = () => {
        if (outcome !== undefined) return resolve();
        try {
          for (;;) {
            const event = this.#heap.size === 0 ? undefined : this.#heap.pop();
            if (event === undefined) throw new Error('Nothing is left that could happen');
            if (event.fn === undefined) continue;
            if (event.at > mostMs) throw new Error(`It did not end within ${mostMs} ms`);
            this.#now = event.at;
            this.events += 1;
            event.place.enter(event.fn);
            break;
          }
        } catch (error) {
          return reject(error);
        }
        // By then all that this event has caused at once is done.
        realImmediate(step);
        return undefined;
      };
      realImmediate(step);
    });
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  }

  sleep(ms) {
    return new Promise((resolve) => this.here(ms, resolve));
  }

  install() {
    const time = this;
    const unwrap = (fn, args) => () => fn(...args);
    globalThis.setTimeout = (fn, ms, ...args) =>
      new VirtualTimeout(time, unwrap(fn, args), ms, false);
    globalThis.setInterval = (fn, ms, ...args) =>
      new VirtualTimeout(time, unwrap(fn, args), ms, true);
    globalThis.setImmediate = (fn, ...args) => ({
      cancel: time.here(0, unwrap(fn, args)),
      ref() {},
      unref() {},
    });
    globalThis.clearTimeout = (timeout) => timeout?.close?.();
    globalThis.clearInterval = globalThis.clearTimeout;
    globalThis.clearImmediate = (immediate) => immediate?.cancel();

    const wall = () => Math.floor(EPOCH + time.#now + time.place.machineClockOffMs);
    globalThis.Date = new Proxy(Date, {
      construct: (target, args, made) =>
        Reflect.construct(target, args.length === 0 ? [wall()] : args, made),
      apply: () => new Date().toString(),
      get: (target, key) => (key === 'now' ? wall : Reflect.get(target, key)),
    });
    performance.now = () => time.#now;
    const nanoseconds = () => BigInt(Math.round(time.#now * 1e6));
    const hrtime = () => [
      Number(nanoseconds() / 1_000_000_000n),
      Number(nanoseconds() % 1_000_000_000n),
    ];
    process.hrtime = Object.assign(hrtime, { bigint: nanoseconds });
    process.uptime = () => time.#now / 1_000;

    Math.random = () => time.place.random();
    const bytes = (into) => {
      const view = new Uint8Array(into.buffer, into.byteOffset, into.byteLength);
      for (let at = 0; at < view.length; at += 1) view[at] = Math.floor(Math.random() * 256);
      return into;
    };
    const uuid = () => {
      const hex = Buffer.from(bytes(new Uint8Array(16))).toString('hex');
      return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-a$4-$5');
    };
    crypto.randomUUID = uuid;
    crypto.randomBytes = (size) => bytes(Buffer.alloc(size));
    crypto.randomInt = (low, high) =>
      high === undefined
        ? Math.floor(Math.random() * low)
        : low + Math.floor(Math.random() * (high - low));
    // Node's own hashes in another thread, and ends at a time that no seed knows.
    crypto.webcrypto.subtle.digest = async (algorithm, data) => {
      const hash = createHash((algorithm.name ?? algorithm).replace('-', ''));
      return new Uint8Array(hash.update(data).digest()).buffer;
    };
    globalThis.crypto.getRandomValues = bytes;
    globalThis.crypto.randomUUID = uuid;

    Object.defineProperty(process, 'pid', { get: () => time.place.pid });
    os.hostname = () => time.place.host;
    dns.lookup = async (host) => [{ address: host, family: 4 }];
    os.networkInterfaces = () => ({});
    os.availableParallelism = () => 2;
    os.loadavg = () => [0, 0, 0];
    os.freemem = () => 2 ** 33;
    perfHooks.monitorEventLoopDelay = () => {
      throw new Error('It is not measured in virtual time');
    };
    // Garbage is collected at times that no seed knows.
    globalThis.FinalizationRegistry = class {
      register() {}
      unregister() {}
    };
    globalThis.WeakRef = class {
      #target;
      constructor(target) {
        this.#target = target;
      }
      deref() {
        return this.#target;
      }
    };
    syncBuiltinESMExports();
  }
}
