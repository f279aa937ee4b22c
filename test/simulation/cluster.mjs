/**
 * The simulated cluster: servers, programs with a coordinator, nodes, and what goes wrong with them. A
 * plan (plan.mjs) says what happens when; the history (history.mjs) says what came of it.
 */

import { begin, history, tell } from './history.mjs';
import { JetStream } from './jetstream.mjs';
import { remember } from './memory.mjs';
import { Network, useNetwork, useSockets } from './network.mjs';
import { runProgram } from './program.mjs';
import { Server } from './server.mjs';
import { Place, randomOf, VirtualTime } from './time.mjs';
import { install, serve, threadsEnd } from './workers.mjs';

const CLUSTER = 'c';
const RESTART_MS = 1_000;
/** How long all has to end when nothing is wrong any more, besides the time of the functions. */
const END_MS = 60_000;

let time;
let allstop;
/** The client's names of subjects and consumers, of all its connections. */
let nuid;
let natsClient;

/** To be called once, before anything else, with the URL of the bundle (build.mjs). */
export async function load(url) {
  time = new VirtualTime();
  time.install();
  install(time);
  // Later imports of these take no time: they are there.
  for (const name of ['transport-node', 'jetstream', 'kv', 'obj']) await import(`@nats-io/${name}`);
  ({ nuid } = await import('@nats-io/nats-core'));
  natsClient = await import('@nats-io/transport-node');
  allstop = await import(url.href);
  remember(allstop.Call, time);
  globalThis[Symbol.for('allstop:simulation')] = {
    currentCall: allstop.currentCall,
    coordinator: () => allstop.Coordinator.current(),
    crashHere: () => Machine.of(time.place).crash('a function'),
  };
  await import('./later-tasks.mjs');
  serve(allstop);
  process.on('warning', ({ code, message }) =>
    tell('warning', { code, message: message.slice(0, 200) }),
  );
  // It ends the process in which it happens.
  process.on('unhandledRejection', (error) =>
    time.place.enter(() => {
      throw error;
    }),
  );
}

/** A machine on which one process runs: a node or a program. It is started again when it dies. */
class Machine {
  static #machines = new Set();

  static of(place) {
    return [...Machine.#machines].find((each) => place.isIn(each.place));
  }

  static forget() {
    for (const each of Machine.#machines) each.place?.kill();
    Machine.#machines.clear();
  }

  name;
  place;
  #lives = 0;
  #start;
  #clockOffMs = 0;
  /** The process has ended for good. */
  isOver = false;

  /** @param start - what the process does, called in its place */
  constructor(name, start) {
    this.name = name;
    this.#start = start;
    Machine.#machines.add(this);
    this.start();
  }

  start() {
    this.#lives += 1;
    const name = this.#lives === 1 ? this.name : `${this.name}~${this.#lives}`;
    const place = new Place(time, name, { host: this.name, pid: 1_000 + this.#lives });
    place.clockOffMs = this.#clockOffMs;
    this.place = place;
    place.onError = (error) => {
      tell('uncaught', { error: String(error?.stack ?? error) });
      this.crash('an error');
    };
    tell('process', { name });
    place.enter(() => this.#start(this));
  }

  /** The process dies, and a supervisor starts it again. */
  crash(why, afterMs = RESTART_MS) {
    if (this.place.isDead) return;
    tell('dies', { name: this.place.name, why });
    this.place.kill();
    time.later(afterMs, () => {
      if (!this.isOver && this.place.isDead) this.start();
    });
  }

  /** The process ends by itself, for good. */
  end() {
    this.isOver = true;
    tell('exits', { name: this.place.name });
    this.place.kill();
  }

  freeze(ms) {
    const { place } = this;
    place.freeze();
    time.later(ms, () => place.thaw());
  }

  jump(ms) {
    this.#clockOffMs += ms;
    this.place.clockOffMs = this.#clockOffMs;
  }
}

class Scene {
  #plan;
  #network;
  #jetstream;
  #servers = [];
  #machines = new Map();
  #nodes = new Map();
  #secret = 'first';
  #stores = [];

  constructor(plan) {
    this.#plan = plan;
    const { clock } = time;
    const random = randomOf(`network/${plan.seed}`);
    this.#network = new Network({ clock, random });
    const storeOf = (domain) => {
      const store = new JetStream({ clock, random, domain });
      store.onStored = (stream, { subject, client }) => {
        tell('stored', { stream, subject, by: client?.by });
      };
      this.#stores.push(store);
      return store;
    };
    const add = (name, address, jetstream) => {
      const login = ({ pass }) => (pass === this.#secret ? {} : undefined);
      const own = { clock, network: this.#network, name, address, jetstream, login };
      const server = this.#network.add(new Server(own));
      this.#servers.push(server);
      return server;
    };
    this.#jetstream = storeOf(plan.domain);
    for (let at = 1; at <= plan.servers; at += 1) {
      const others = [...this.#servers];
      const server = add(`s${at}`, `10.0.0.${at}:4222`, this.#jetstream);
      for (const other of others) server.route(other);
    }
    const [hub] = this.#servers;
    for (const { name, domain } of plan.leafs ?? []) {
      const own = domain === undefined ? undefined : storeOf(domain);
      add(name, `10.0.1.${name.slice(1)}:4222`, own).leafOf(hub);
    }
  }

  get network() {
    return this.#network;
  }

  /** @param names - of the servers that are known there; all but leafs, if left out */
  #connect(names, domain) {
    const known = this.#servers.filter(({ name }) => names?.includes(name) ?? name.startsWith('s'));
    return {
      servers: known.map(({ address }) => address),
      connect: () => ({ user: 'u', pass: this.#secret }),
      ...(domain !== undefined && { jetstream: { domain } }),
    };
  }

  /** Does what a step of the plan says, and undoes it after its `ms`. */
  do(step) {
    const { kind, name, ms } = step;
    tell(`+ ${kind}`, step);
    const undo = this[`_${kind}`](step, name);
    if (undo === undefined) return;
    time.later(ms, () => {
      tell(`- ${kind}`, step);
      undo();
    });
  }

  _program({ works, onHeld, servers, domain, replicas = this.#plan.replicas }, name) {
    const start = async (machine) => {
      const { lostAfterMs } = this.#plan;
      const strategy = {
        ...this.#connect(servers, domain),
        cluster: CLUSTER,
        module: new URL('./program.mjs', import.meta.url),
        definition: 'v1',
        onHeld,
        replicas,
        lostAfterMs,
      };
      await runProgram({ allstop, strategy, works, time });
      machine.end();
    };
    this.#machines.set(name, new Machine(name, (machine) => void start(machine)));
  }

  _node({ slots, job, definition = 'v1', isLater, resources, servers }, name) {
    const file = isLater === true ? './later-tasks.mjs' : './tasks.mjs';
    const start = (machine) => {
      const node = new allstop.ClusterNode({
        module: new URL(file, import.meta.url),
        cluster: CLUSTER,
        connection: allstop.checkConnectionOptions(this.#connect(servers)),
        job: job ?? 'worker',
        slots,
        definition,
        resources,
        version: '0.0.0',
        onEvent: ({ event, why }) => tell(event, { why }),
      });
      this.#nodes.set(name, node);
      void node.failed.then(() => machine.crash('no thread lives'));
    };
    this.#machines.set(name, new Machine(name, start));
  }

  /** Asks again and again what is wrong, as `allstop doctor --servers` does. */
  _doctor({ everyMs, untilMs }, name) {
    const { servers } = this.#connect();
    const options = allstop.checkConnectionOptions(this.#connect());
    const place = new Place(time, name);
    const look = async () => {
      while (time.ms < untilMs) {
        await time.sleep(everyMs);
        const from = time.ms;
        try {
          const own = { user: 'u', pass: this.#secret, reconnect: false, timeout: 2_000 };
          const nats = await natsClient.connect({ servers, ...own });
          const { checks } = await allstop.topologyOf(nats, CLUSTER, options);
          await nats.close();
          const bad = checks.filter(({ ok }) => !ok);
          const problems = bad.map((each) => `${each.name} ${each.target ?? ''}: ${each.cause}`);
          tell('doctor', { from, problems });
        } catch (error) {
          tell('no doctor', { message: error.message });
        }
      }
    };
    place.enter(() => void look());
  }

  /** INFO of the servers names addresses. */
  _advertise({ addresses }) {
    for (const server of this.#servers) server.advertise(addresses);
  }

  /** Ends a node in order, as SIGTERM does. */
  _leave(_step, name) {
    const node = this.#nodes.get(name);
    const machine = this.#machines.get(name);
    const leave = async () => {
      tell('leaves');
      await node.leave();
      await node.close();
      machine.end();
    };
    if (!machine.place.isDead) machine.place.enter(() => void leave());
  }

  _crash({ ms }, name) {
    this.#machines.get(name)?.crash('kill -9', ms);
  }

  _freeze({ ms }, name) {
    this.#machines.get(name)?.freeze(ms);
    return () => {};
  }

  _jump({ ms }, name) {
    this.#machines.get(name)?.jump(ms);
  }

  /** `from` and `to`: names of machines and servers. */
  #ends({ from, to }) {
    const of = (name) => this.#servers.find((each) => each.name === name) ?? name;
    return [of(from), of(to)];
  }

  _cut(step) {
    const [from, to] = this.#ends(step);
    const changed = () => this.#jetstream.changed();
    this.#network.cut(from, to);
    if (!step.isOneWay) this.#network.cut(to, from);
    changed();
    return () => {
      this.#network.mend(from, to);
      this.#network.mend(to, from);
      changed();
    };
  }

  _slow(step) {
    const [from, to] = this.#ends(step);
    const ways = [this.#network.way(from, to), this.#network.way(to, from)];
    const before = ways.map(({ latencyMs, bytesPerMs }) => ({ latencyMs, bytesPerMs }));
    for (const way of ways) Object.assign(way, step.by);
    return () => {
      for (const [at, way] of ways.entries()) Object.assign(way, before[at]);
    };
  }

  #server(name) {
    return this.#servers.find((each) => each.name === name);
  }

  _serverCrash({ wipes }, name) {
    const server = this.#server(name);
    server.crash();
    if (wipes) this.#jetstream.wipe();
    return () => server.restart();
  }

  /** JetStream has no room for anything more. */
  _full() {
    this.#jetstream.isFull = true;
    return () => {
      this.#jetstream.isFull = false;
    };
  }

  /** The password changes; connections with the old one are ended. */
  _secret({ secret }) {
    this.#secret = secret;
    for (const server of this.#servers) {
      server.setLogin(({ pass }) => (pass === secret ? {} : undefined), true);
    }
  }

  /** Resolves when every program has ended. */
  async ended() {
    const names = this.#plan.steps.filter(({ kind }) => kind === 'program').map(({ name }) => name);
    for (;;) {
      const machines = names.map((name) => this.#machines.get(name));
      if (machines.every((each) => each?.isOver === true)) return;
      await time.sleep(500);
    }
  }

  get sizes() {
    const kept = this.#stores.flatMap(({ sizes }) => sizes);
    return {
      clients: this.#servers.map(({ clients }) => clients),
      bytes: this.#network.most,
      kept,
    };
  }
}

/** When the last thing of a plan has begun, and the last fault is over. */
const calmOf = ({ steps }) =>
  Math.max(
    ...steps.map(({ kind, at, ms = 0 }) => (kind === 'jump' || kind === 'doctor' ? at : at + ms)),
  );

const holdsUntil = ({ steps }) =>
  Math.max(0, ...steps.flatMap(({ works = [] }) => works.map(({ untilMs = 0 }) => untilMs)));

/** How long the functions of a plan take, one after the other. */
function worksMs(plan) {
  const works = plan.steps.flatMap((step) => step.works ?? []);
  return works.reduce((sum, { count = 0, ms = 1_000 }) => sum + count * ms, 0);
}

/** Runs a plan to its end. @returns its history, and an error if it did not end */
export async function simulate(plan) {
  time.reset(plan.seed);
  nuid.reset();
  globalThis[Symbol.for('allstop:simulation:restart')]();
  begin(time);
  const scene = new Scene(plan);
  const restore = [useNetwork, useSockets].map((use) => use(scene.network, () => time.place));
  let error;
  for (const step of plan.steps) time.later(step.at, () => scene.do(step));
  const calm = calmOf(plan);
  time.later(calm, () => tell('calm'));
  try {
    await time.run(scene.ended(), Math.max(calm, holdsUntil(plan)) + END_MS + worksMs(plan));
  } catch (caught) {
    error = caught;
    tell('unfinished', { error: caught.message });
  }
  tell('over', scene.sizes);
  for (const each of restore) each();
  Machine.forget();
  threadsEnd();
  return { history: history(), error, events: time.events, ms: time.ms };
}
