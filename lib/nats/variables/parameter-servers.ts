/**
 * The variables of a cluster over NATS, at its coordinator's end. Each variable is kept by one
 * parameter server, a node of the job `ps` (node-session.ts); a large one by several, each of
 * which has a range of its elements (below).
 *
 * 1. Every operation goes through the coordinator, also one of a function on a worker, and from
 *    there to the variable's server, through the server's one session. A session's channel delivers
 *    each message once, in order: so the operations on a variable happen once each, in the order in
 *    which the coordinator sends them. The parts of an operation on several ranges are sent in one
 *    turn of the event loop: so each server has the parts in the same order, and the parts of a read
 *    are all from between the same two updates, though each comes at its own time.
 * 2. What is sent to all servers in one turn of the event loop is a consistent cut. An operation
 *    that was answered before that turn was sent before it, and one that follows from it is sent
 *    after it.
 * 3. An `assignAdd` of a function has the id of its call and its ordinal. Its servers remember
 *    both until the coordinator says that the call is over; from then on the coordinator lets no
 *    write of an attempt through that a worker may still run.
 * 4. Of two attempts of a call that run at the same time (the worker of the first was given up,
 *    and came back) the later one's assigns stand: an assign of the earlier one that comes after
 *    has no effect, as if it had come before.
 * 5. A variable lives as long as the sessions of servers that it was made in. When one is lost,
 *    the operations fail, and with them the cluster; a server that is started again has another
 *    session, without variables. A server that has none can be lost and come back like a worker,
 *    unless the ClusterSpec names it.
 * 6. A read is answered by the one before it, if that is on its way and no write to the variable was
 *    sent since: the servers would give both the same value. So many workers that read at once
 *    cost one message of each server.
 * 7. A server that refuses its part of an update (it has no memory for it, or the coordinator none
 *    for the message) would have an older range than the others. The variables are gone then, before
 *    a read that was sent after the update is answered: that server's answer to the read comes later.
 */

import { createHash } from 'node:crypto';
import { messageOf } from '../../base/thrown-value.ts';
import { setImmediate, within } from '../../base/timer.ts';
import {
  byteLengthOf,
  bytesOf,
  checkFits,
  type Definition,
  definitionOf,
  elementsOf,
  emptyArray,
  isArrayFor,
  makeVariable,
  otherShape,
  shapeOf,
  type Values,
  type Variable,
  type VariableOptions,
  type VariableStore,
  type VariableValue,
} from '../../cluster/variables/variable.ts';
import {
  FailedPreconditionError,
  InvalidArgumentError,
  poolClosed,
  UnavailableError,
} from '../../errors/errors.ts';
import type { EngineReadiness } from '../../errors/phases.ts';
import { binding } from '../../native/native.ts';
import { ChangeListeners } from '../../pool/queue/readiness.ts';
import type { Answer, Request } from '../../pool/worker/variables.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { checkLength } from '../wire/reliable-channel.ts';
import type { ServerRequest, ToNode } from '../wire/session-messages.ts';

// Which parameter servers keep a variable. Its name says which one; a large variable is on several,
// and each has a range of its elements.

/**
 * A variable that is longer is on as many servers as it has pieces of this length, if there are so
 * many: what a server of NATS takes in one message by default, and a session has on its way.
 */
const RANGE_BYTES = 1024 * 1024;

/** Some of a variable's elements, or all, and the server that keeps them. */
type Part = {
  readonly server: NodeLine;
  /** Its name is that by which the server knows the range. */
  readonly definition: Definition;
  /** The index of its first element in the variable. */
  readonly begin: number;
};

/**
 * The indexes of the servers for a variable: the same ones in each program with as many servers.
 * None if `places`, the indexes of all, has none.
 */
function placesOf(definition: Definition, places: readonly number[] = []): number[] {
  const pieces = Math.ceil(byteLengthOf(definition) / RANGE_BYTES);
  const count = Math.min(places.length, Math.max(1, pieces));
  const first = createHash('sha256').update(definition.name).digest().readUInt32LE(0);
  return Array.from({ length: count }, (_, at) => places[(first + at) % places.length] ?? 0);
}

/** The value of each range, without a copy. */
function split(value: VariableValue, parts: readonly Part[]): VariableValue[] {
  if (parts.length === 1 || typeof value === 'number') return [value];
  return parts.map(({ definition, begin }) => elementsOf(definition, value, begin));
}

/**
 * The variable's value, in memory of its own: the array that a message holds is a view of the
 * message, or of memory of other buffers.
 *
 * @throws UnavailableError: `values`, the servers' answers, are not those of the parts
 */
function joined(
  definition: Definition,
  parts: readonly Part[],
  values: readonly unknown[],
): VariableValue {
  const wrong = (): UnavailableError =>
    new UnavailableError(
      `The parameter server of the variable '${definition.name}' has answered with what is not ${shapeOf(definition)}`,
    );
  if (definition.type === 0) {
    if (typeof values[0] !== 'number') throw wrong();
    return values[0];
  }
  const all = emptyArray(definition);
  for (const [at, { definition: own, begin }] of parts.entries()) {
    const value = values[at];
    if (!isArrayFor(own, value)) throw wrong();
    all.set(value, begin);
  }
  return all;
}

/** How long `variable()` waits for a parameter server. */
const TIMEOUT_MS = 60_000;

/** The part of a Session that carries operations. */
export interface NodeLine {
  post(message: ToNode): void;
  /** Whether the call of this id is in flight there, and nowhere settled. */
  isRunning(call: number): boolean;
}

/** The tasks of the job `ps`. */
export interface ServerTasks {
  /** Those that are ready. */
  readonly servers: { index: number; session: NodeLine }[];
  /** The indexes of those that the program expects; undefined: it takes those that there are. */
  readonly expectedServers: readonly number[] | undefined;
}

/** The run's hold of the cluster. */
export interface Hold {
  /** How the connection is. */
  state(): EngineReadiness;
  /** `Engine.assertHeld` */
  assertHeld(): Promise<void>;
}

/** The values of a variable's parts; all of it for messages to workers, when one was made. */
type Reading = { readonly values: readonly unknown[]; whole?: unknown };
type Made = {
  readonly definition: Definition;
  /** One, or those of a large variable in the order of their elements. */
  readonly parts: readonly Part[];
  readonly variable: Variable;
  /** On its way, with no write sent since (6). */
  reading?: Promise<Reading> | undefined;
};
type Pending = {
  server: NodeLine;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
};

export class ParameterServers implements VariableStore {
  readonly #tasks: ServerTasks;
  readonly #sessions: ReadonlyMap<string, NodeLine>;
  readonly #hold: Hold;
  #owner: object = this;
  readonly #changes = new ChangeListeners();
  /** By name; a promise of one that is on its way to its server. */
  readonly #names = new Map<string, Promise<Made>>();
  readonly #made = new Map<string, Made>();
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  /** How many calls of `variable()` wait for a server or its answer. */
  #making = 0;
  /** How many of them wait for a server. */
  #seeking = 0;
  /**
   * Sessions that began meanwhile: their threads start when no call waits any more, so that setup
   * functions find what the program makes at its beginning.
   */
  readonly #held = new WeakSet<NodeLine>();
  /** The servers that a variable was made on, or is on its way to. */
  readonly #homes = new WeakSet<NodeLine>();
  /** By call: the servers that remember an `assignAdd` of it. */
  readonly #additions = new Map<number, Set<NodeLine>>();
  /** By call and variable: the latest attempt that has assigned (4). */
  readonly #assigned = new Map<number, Map<string, number>>();
  /** The indexes of the servers among which names are shared out, from the first variable on. */
  #places: readonly number[] | undefined;
  /** Why no operation is possible any more. */
  #end: Error | undefined;

  /** @param sessions - all of the run, also those that are away */
  constructor(tasks: ServerTasks, sessions: ReadonlyMap<string, NodeLine>, hold: Hold) {
    this.#tasks = tasks;
    this.#sessions = sessions;
    this.#hold = hold;
    this.#places = tasks.expectedServers;
  }

  /** @param owner - the ClusterCoordinator */
  ownedBy(owner: object): this {
    this.#owner = owner;
    return this;
  }

  get definitions(): Definition[] {
    return [...this.#made.values()].map(({ definition }) => definition);
  }

  async variable(
    name: string,
    initial: VariableValue,
    { ps, timeoutMs = TIMEOUT_MS }: VariableOptions = {},
  ): Promise<Variable> {
    const definition = definitionOf(name, initial);
    const value = typeof initial === 'number' ? initial : initial.slice();
    this.#making += 1;
    const made = await this.#find(definition, value, ps, timeoutMs)
      // The program may make the next variable when it has this one.
      .finally(() => setImmediate(() => this.#endMaking()));
    if (this.#end !== undefined) throw this.#unavailable();
    const { type, length } = made.definition;
    if (type !== definition.type || length !== definition.length) {
      throw otherShape(made.definition, definition);
    }
    return made.variable;
  }

  /** One message for each variable: all of a server could be longer than a message may be. */
  async snapshot(): Promise<Values> {
    const asked = [...this.#made].map(async ([name, { definition, variable }]) => {
      const value = await variable.read();
      const array = typeof value === 'number' ? Float64Array.of(value) : value;
      return [name, { definition, value: array }] as const;
    });
    return new Map(await Promise.all(asked));
  }

  async restore(values: Values): Promise<void> {
    const asked = [...this.#made].map(async ([name, { definition, variable }]) => {
      const value = values.get(name)?.value;
      if (value !== undefined)
        await variable.assign(definition.type === 0 ? (value[0] ?? 0) : value);
    });
    await Promise.all(asked);
  }

  async assertHeld(): Promise<void> {
    await this.#hold.assertHeld();
  }

  forget(call: number): void {
    this.#assigned.delete(call);
    const servers = this.#additions.get(call);
    if (servers === undefined) return;
    this.#additions.delete(call);
    for (const server of servers)
      server.post({ kind: 'operate', id: 0, request: ['forget', '', call, 0] });
  }

  // ---------------------------------------------------------------- called by the engine

  /** A server may be ready now. */
  changed(): void {
    this.#changes.notify();
  }

  /** For what the threads of this session wait; undefined: for no variable. */
  holds(session: NodeLine): 'server' | 'answer' | undefined {
    if (!this.#held.has(session)) return undefined;
    return this.#seeking > 0 ? 'server' : 'answer';
  }

  /** Whether variables are lost with this session. */
  isHome(session: NodeLine): boolean {
    return this.#homes.has(session);
  }

  /** A session has begun: its threads start with what this sends. */
  begin(session: NodeLine): void {
    if (this.#making > 0) this.#held.add(session);
    else session.post({ kind: 'defined', definitions: this.definitions });
  }

  /** A server's answer. */
  answered(server: NodeLine, id: number, [value, record]: Answer): void {
    const pending = this.#pending.get(id);
    if (pending?.server !== server) return;
    this.#pending.delete(id);
    if (record === undefined) pending.resolve(value);
    else pending.reject(decode(record).value);
  }

  /** A worker asks for an operation. */
  operate(worker: NodeLine, id: number, request: Request): void {
    const reply = (...answer: Answer): void => worker.post({ kind: 'answer', id, answer });
    this.#pass(worker, request).then(
      (value) => reply(value),
      (error: unknown) => reply(undefined, encode(error).bytes),
    );
  }

  close(): void {
    this.fail(poolClosed('cluster'));
  }

  /** No operation is possible any more: a server is lost, or the cluster has failed. */
  fail(error: Error): void {
    if (this.#end !== undefined) return;
    this.#end = error;
    for (const { reject } of this.#pending.values()) reject(this.#unavailable());
    this.#pending.clear();
    this.#changes.notify();
  }

  // ----------------------------------------------------------------

  #unavailable(): Error {
    if (this.#end instanceof FailedPreconditionError) return this.#end; // closed, or taken over
    return new UnavailableError(`The cluster's variables are gone: ${messageOf(this.#end)}`, {
      cause: this.#end,
    });
  }

  /** The variable of this name. Of several calls the first one that finds its server makes it. */
  async #find(
    definition: Definition,
    initial: VariableValue,
    ps: number | undefined,
    timeoutMs: number,
  ): Promise<Made> {
    const { name } = definition;
    const known = this.#names.get(name);
    if (known !== undefined) return await known;
    if (ArrayBuffer.isView(initial)) checkLength(bytesOf(initial));
    const servers = await this.#serversOf(definition, ps, timeoutMs);
    const meanwhile = this.#names.get(name);
    if (meanwhile !== undefined) return await meanwhile;
    if (servers === undefined) throw this.#unavailable();
    const making = this.#make(definition, initial, servers);
    this.#names.set(name, making);
    making.catch(() => this.#names.delete(name));
    this.#changes.notify();
    return await making;
  }

  async #make(
    definition: Definition,
    initial: VariableValue,
    servers: readonly NodeLine[],
  ): Promise<Made> {
    const { name, type, length } = definition;
    const start = (at: number): number => Math.floor((at * length) / servers.length);
    const parts = servers.map((server, at) => {
      // A key is never used again: of a variable that could not be made, a server may keep a range.
      this.#lastId += 1;
      const begin = start(at);
      const own = { name: `${this.#lastId} ${name}`, type, length: start(at + 1) - begin };
      return { server, definition: own, begin };
    });
    const values = split(initial, parts);
    const defined = parts.map(({ server, definition: { name: key } }, at) =>
      this.#ask(server, ['define', key, 0, 0, values[at]]),
    );
    await Promise.all(defined);
    const variable = makeVariable(
      definition,
      {
        read: async () => joined(definition, parts, (await this.#readParts(made)).values),
        update: (operation, value) => this.#update(made, [operation, name, 0, 0, value]),
      },
      this.#owner,
    );
    binding().bindRemoteVariable(variable);
    const made: Made = { definition, parts, variable };
    this.#made.set(name, made);
    for (const session of this.#sessions.values()) {
      if (!this.#held.has(session)) session.post({ kind: 'defined', definitions: [definition] });
    }
    return made;
  }

  #endMaking(): void {
    this.#making -= 1;
    if (this.#making > 0) return;
    for (const session of this.#sessions.values()) {
      if (this.#held.delete(session))
        session.post({ kind: 'defined', definitions: this.definitions });
    }
  }

  /**
   * The servers that are to keep the variable, when all are ready. Undefined: another call makes the
   * variable, or no operation is possible any more.
   */
  async #serversOf(
    definition: Definition,
    ps: number | undefined,
    timeoutMs: number,
  ): Promise<NodeLine[] | undefined> {
    const { name } = definition;
    const { expectedServers: expected } = this.#tasks;
    if (ps !== undefined && expected?.includes(ps) === false) {
      throw new InvalidArgumentError(
        `The variable '${name}' cannot be on ps:${ps}: the ClusterSpec has no such task`,
      );
    }
    const indexes = (): number[] => (ps === undefined ? placesOf(definition, this.#places) : [ps]);
    const session = (index: number): NodeLine | undefined =>
      this.#tasks.servers.find((server) => server.index === index)?.session;
    let found: NodeLine[] | undefined;
    const look = (): boolean => {
      const ready = this.#tasks.servers;
      if (this.#places === undefined && ps === undefined && ready.length > 0) {
        this.#places = ready.map(({ index }) => index);
      }
      const wanted = indexes();
      const there = wanted.map(session).filter((each) => each !== undefined);
      found = wanted.length > 0 && there.length === wanted.length ? there : undefined;
      // Now, not when the caller goes on: a server may be lost before that.
      if (found !== undefined && !this.#names.has(name)) {
        for (const server of found) this.#homes.add(server);
      }
      return found !== undefined || this.#names.has(name) || this.#end !== undefined;
    };
    this.#seeking += 1;
    const late = (): never => {
      const missing = indexes().find((index) => session(index) === undefined);
      const why = whyNone(missing, this.#hold.state());
      throw new UnavailableError(
        `The variable '${name}' has no parameter server after ${timeoutMs} ms: ${why}`,
      );
    };
    await within(timeoutMs, this.#changes.until(look), late).finally(() => {
      this.#seeking -= 1;
    });
    return found;
  }

  /** @param onRefused - called as soon as the server has refused, before it has answered more (7) */
  #ask(
    server: NodeLine,
    request: ServerRequest,
    onRefused?: (error: unknown) => void,
  ): Promise<unknown> {
    if (this.#end !== undefined) return Promise.reject(this.#unavailable());
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, rejectOwn) => {
      const reject = (error: unknown): void => {
        rejectOwn(error);
        onRefused?.(error);
      };
      this.#pending.set(id, { server, resolve, reject });
      try {
        server.post({ kind: 'operate', id, request });
      } catch (error) {
        this.#pending.delete(id);
        reject(error); // it could not be packed
      }
    });
  }

  #readParts(made: Made): Promise<Reading> {
    if (made.reading !== undefined) return made.reading;
    const asked = made.parts.map(({ server, definition: { name: key } }) =>
      this.#ask(server, ['read', key, 0, 0]),
    );
    const reading = Promise.all(asked).then((values) => ({ values }));
    made.reading = reading;
    const over = (): void => {
      if (made.reading === reading) made.reading = undefined;
    };
    reading.then(over, over);
    return reading;
  }

  /** @param request - with a value that fits */
  async #update(made: Made, request: Request): Promise<void> {
    const { parts } = made;
    const [operation, name, call, ordinal, value] = request;
    made.reading = undefined;
    const onRefused = (cause: unknown): void => {
      const message = `A parameter server has refused its part of the variable '${name}'`;
      this.fail(new UnavailableError(message, { cause }));
    };
    const values = split(value as VariableValue, parts);
    const asked = parts.map(({ server, definition: { name: key } }, at) => {
      if (operation === 'assignAdd' && call > 0) {
        const servers = this.#additions.get(call) ?? new Set();
        this.#additions.set(call, servers.add(server));
      }
      const part: Request = [operation, key, call, ordinal, values[at]];
      return this.#ask(server, part, parts.length === 1 ? undefined : onRefused);
    });
    await Promise.all(asked);
  }

  async #pass(worker: NodeLine, request: Request): Promise<unknown> {
    const [operation, name, call, ordinal, value] = request;
    const made = this.#made.get(name);
    if (made === undefined) throw new InvalidArgumentError(`There is no variable '${name}'`);
    if (operation === 'read') {
      const reading = await this.#readParts(made);
      const { values } = reading;
      if (values.length === 1) return values[0];
      // Other messages may hold the same value.
      reading.whole ??= joined(made.definition, made.parts, values);
      return reading.whole;
    }
    if (call > 0 && !worker.isRunning(call)) {
      throw new FailedPreconditionError(
        `The function that writes to the variable '${name}' has ended: another worker was first, or it was cancelled`,
      );
    }
    checkFits('value', made.definition, value);
    const isLate = operation === 'assign' && call > 0 && this.#isLate(call, name, ordinal);
    if (!isLate) await this.#update(made, request);
    return undefined;
  }

  /** Whether a later attempt of the call has assigned to the variable (4). */
  #isLate(call: number, name: string, attempt: number): boolean {
    const byName = this.#assigned.get(call) ?? new Map<string, number>();
    this.#assigned.set(call, byName);
    const latest = Math.max(byName.get(name) ?? 0, attempt);
    byName.set(name, latest);
    return latest > attempt;
  }
}

/** Why the server of this index is not there, or none is, and what to do. */
function whyNone(index: number | undefined, { phase, cause, remedy }: EngineReadiness): string {
  if (phase !== 'ready') {
    const what = remedy === undefined ? '' : `. What to do: ${remedy}`;
    return `the cluster is ${phase}${cause === undefined ? '' : `, ${cause}`}${what}`;
  }
  const which = index === undefined ? 'none is' : `ps:${index} is not`;
  return `${which} ready. What to do: start one: allstop worker --job ps`;
}
