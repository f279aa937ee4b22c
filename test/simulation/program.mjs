/** The program of the simulation: it calls functions of the cluster, and tells what came of it. */

import { tell } from './history.mjs';
import { remembered } from './memory.mjs';
import { stopsOf } from './workers.mjs';

const PROBE_MS = 1_000;
const KEYED_MS = 100;
/** By then nothing is left of what has settled. */
const SETTLED_MS = 2_000;

/** What an error says. */
const facts = (error) => ({
  how: error?.name ?? String(error),
  code: error?.code,
  message: String(error?.message).slice(0, 160),
});

class Program {
  #cluster;
  #Checkpoint;
  #time;
  #count = 0;
  /** This program has learnt that another has the cluster. */
  #isLost = false;
  #isStopped = false;

  constructor(cluster, Checkpoint, time) {
    this.#cluster = cluster;
    this.#Checkpoint = Checkpoint;
    this.#time = time;
    cluster.coordinator.signal.addEventListener('abort', () => {
      this.#isStopped = true;
    });
  }

  get #isOver() {
    return this.#isLost || this.#isStopped;
  }

  get #id() {
    this.#count += 1;
    return `${this.#time.place.name}/${this.#count}`;
  }

  /** Tells of a call, and how it settles. */
  async #call(kind, make, about = {}) {
    const id = this.#id;
    tell('calls', { id, kind, ...about });
    try {
      const value = await make(id);
      tell('settles', { id, how: 'ok', value });
      return value;
    } catch (error) {
      if (error?.name === 'FailedPreconditionError' && kind !== 'keyed add') this.#isLost = true;
      tell('settles', { id, ...facts(error) });
      return undefined;
    }
  }

  async #every(count, everyMs, make) {
    const all = [];
    for (let at = 0; at < count && !this.#isOver; at += 1) {
      const made = make(at);
      made.catch(() => {}); // it may fail before all are awaited
      all.push(made);
      if (everyMs > 0) await this.#time.sleep(everyMs);
    }
    await Promise.all(all);
  }

  async calls({ count, everyMs, ms, name = 'square', options = {} }) {
    await this.#every(count, everyMs, (number) =>
      this.#call('run', (id) => this.#cluster.run(name, [{ id, number, ms }], options), {
        is: number * number,
        ...(options.retries === 0 && { once: true }),
      }),
    );
  }

  /** Functions that end when their worker leaves. */
  async patient({ count, everyMs, ms }) {
    await this.#every(count, everyMs, (number) =>
      this.#call('run', (id) => this.#cluster.run('patient', [{ id, number, ms }]), {
        is: number,
        isPatient: true,
      }),
    );
  }

  /** Functions that are given so many bytes, and give them back. */
  async bulk({ count, everyMs, ms, bytes }) {
    await this.#every(count, everyMs, (number) =>
      this.#call(
        'run',
        async (id) => {
          const sent = new Uint8Array(bytes).fill(number);
          const back = await this.#cluster.run('echo', [{ id, ms, bytes: sent }]);
          return back.length === bytes && back.at(-1) === number % 256 ? number : undefined;
        },
        { is: number },
      ),
    );
  }

  /** Calls that need so much of a resource. */
  async needy({ count, everyMs, ms, needs }) {
    const resources = { gpu: needs };
    await this.#every(count, everyMs, (number) =>
      this.#call(
        'run',
        (id) => this.#cluster.run('square', [{ id, number, ms, needs }], { resources }),
        { is: number * number, needs },
      ),
    );
  }

  /** Draws from a data set of each worker. */
  async draws({ count, everyMs, items }) {
    const iterator = this.#cluster.createPerWorkerDataset('numbers', [{ count: items }]).iterator();
    await this.#every(count, everyMs, () =>
      this.#call('draw', (id) => this.#cluster.run('draw', [{ id }, iterator])),
    );
  }

  /** Schedules functions, of which one may fail, and joins them. */
  async schedules({ count, everyMs, ms, failing }) {
    const all = [];
    const thrown = (error) => {
      if (error?.name === 'FailedPreconditionError') this.#isLost = true;
      tell('throws', facts(error));
    };
    for (let number = 0; number < count && !this.#isOver; number += 1) {
      const id = this.#id;
      const isBad = number === failing;
      const args = [{ id, number, ms }];
      try {
        const value = await this.#cluster.schedule(isBad ? 'fail' : 'square', args);
        const kind = isBad ? 'failing' : 'scheduled';
        tell('calls', { id, kind, is: number * number });
        all.push(
          value.fetch().then(
            (result) => tell('settles', { id, how: 'ok', value: result }),
            (error) => tell('settles', { id, ...facts(error) }),
          ),
        );
      } catch (error) {
        thrown(error);
      }
      if (everyMs > 0) await this.#time.sleep(everyMs);
    }
    // The error of a function is thrown once.
    for (let left = 2; left > 0 && !this.#isOver; left -= 1) {
      await this.#cluster.join().then(() => tell('joins'), thrown);
    }
    await Promise.all(all);
  }

  /** Stops the cluster: this program does, or a function. */
  async stop({ isRemote }) {
    if (isRemote) {
      await this.#call('stop', (id) => this.#cluster.run('stop', [{ id }]));
      return;
    }
    const id = this.#id;
    tell('stops', { id });
    this.#cluster.coordinator.requestStop(new RangeError(id));
  }

  async cancelled({ count, everyMs, ms, afterMs }) {
    await this.#every(count, everyMs, async (number) => {
      const controller = new AbortController();
      const cancel = this.#time.sleep(afterMs).then(() => controller.abort());
      const { signal } = controller;
      const run = (id) => this.#cluster.run('square', [{ id, number, ms }], { signal });
      await this.#call('run', run, { is: number * number, isCancelled: true });
      await cancel;
    });
  }

  async deadlines({ count, everyMs, ms, timeoutMs }) {
    await this.#every(count, everyMs, (number) => {
      const run = (id) => this.#cluster.run('square', [{ id, number, ms }], { timeoutMs });
      return this.#call('deadline', run, { is: number * number });
    });
  }

  async poison({ count, everyMs, retries }) {
    await this.#every(count, everyMs, () =>
      this.#call('poison', (id) => this.#cluster.run('poison', [{ id }], { retries }), { retries }),
    );
  }

  async map({ count, ms }) {
    const id = this.#id;
    tell('maps', { id, count });
    const items = Array.from({ length: count }, (_, number) => ({
      id: `${id}.${number}`,
      number,
      ms,
    }));
    try {
      for await (const value of this.#cluster.map('square', items)) tell('item', { id, value });
      tell('mapped', { id, how: 'ok' });
    } catch (error) {
      if (error?.name === 'FailedPreconditionError') this.#isLost = true;
      tell('mapped', { id, ...facts(error) });
    }
  }

  async keyed({ count, everyMs, keys }) {
    await this.#every(count, everyMs, (at) => {
      const number = at % keys;
      const key = `k${number}`;
      // The arguments of a key are the same in every call.
      const work = { id: key, number, ms: KEYED_MS * number };
      const run = () => this.#cluster.run('square', [work], { key });
      return this.#call('keyed', run, { key, is: number * number });
    });
  }

  /** Adds to a variable from many functions at once, and reads it meanwhile. */
  async adds({ count, everyMs, ms }) {
    const name = 'count';
    const variable = await this.#cluster.variable(name, 0);
    const add = (id) => this.#cluster.run('add', [{ id, name, ms }]);
    const read = async () => {
      const id = this.#id;
      tell('reads', { id });
      tell('read', { id, value: await variable.read() });
    };
    const key = `add-${this.#time.place.name}`;
    await this.#call('keyed add', (id) => this.#cluster.run('add', [{ id, name, ms }], { key }));
    await this.#every(count, everyMs, async (at) => {
      await Promise.all([this.#call('add', add), at % 3 === 0 && read()]);
    });
    await read();
  }

  /** Counts in a variable, saves it now and then, and begins with what was saved last. */
  async training({ count, everyMs }) {
    const name = 'sum';
    let [done, save] = [0, 'none'];
    const variable = await this.#cluster.variable(name, 0);
    const checkpoint = new this.#Checkpoint(this.#cluster, {
      bucket: 'checkpoints',
      state: () => ({ done, save }),
      load: (state) => {
        ({ done, save } = state);
      },
    });
    tell('restores');
    await checkpoint.restoreLatest();
    tell('restored', { save, done, value: await variable.read() });
    while (done < count) {
      const add = (id) => this.#cluster.run('add', [{ id, name, ms: 5 }]);
      await this.#call('step', add);
      if (this.#isOver) return;
      done += 1;
      if (done % 3 === 0) {
        save = this.#id;
        tell('saves', { save, done });
        await checkpoint.save(done);
        tell('saved', { save });
      }
      await this.#time.sleep(everyMs);
    }
    tell('trained', { done, value: await variable.read() });
  }

  /** Calls a function now and then, as long as this program has the cluster. */
  async hold({ untilMs }) {
    while (this.#time.ms < untilMs && !this.#isLost) {
      if (this.#isStopped) {
        await this.#time.sleep(untilMs - this.#time.ms);
        break;
      }
      const run = (id) => this.#cluster.run('square', [{ id, number: 2, ms: 5 }]);
      await this.#call('probe', run, { is: 4 });
      await this.#time.sleep(PROBE_MS);
    }
  }

  async run(works) {
    await Promise.all(
      works.map(async ({ kind, at, ...work }) => {
        await this.#time.sleep(at);
        await this[kind](work).catch((error) => {
          if (error?.name === 'FailedPreconditionError') this.#isLost = true;
          tell('work fails', { kind, ...facts(error) });
        });
      }),
    );
    if (this.#isStopped && !this.#isLost) await this.#join();
    await this.#time.sleep(SETTLED_MS);
    tell('keeps', { held: remembered() });
    tell('is done', { isLost: this.#isLost });
  }

  /** What everybody knows of the stop, and what is thrown here. */
  async #join() {
    const { id, error } = this.#cluster.coordinator.stopRecord;
    tell('stopped', { record: id, of: error?.message, everywhere: stopsOf() });
    await this.#cluster.coordinator.join().then(
      () => tell('stop thrown', { how: 'ok' }),
      (thrown) => tell('stop thrown', facts(thrown)),
    );
  }
}

export async function runProgram({ allstop, strategy, works, time }) {
  const { Checkpoint, ClusterCoordinator, NatsStrategy, NatsResults } = allstop;
  const { servers, connect, jetstream, replicas } = strategy;
  const results = new NatsResults({ servers, connect, jetstream, bucket: 'results', replicas });
  const cluster = new ClusterCoordinator(new NatsStrategy(strategy), { results });
  for (const event of ['disconnected', 'reconnected', 'workerLost', 'workerRestored']) {
    cluster.on(event, () => tell(event));
  }
  const program = new Program(cluster, Checkpoint, time);
  await program.run(works);
  await cluster.close().catch((error) => tell('close fails', facts(error)));
}
