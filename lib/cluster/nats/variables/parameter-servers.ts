/**
 * The variables of a cluster over NATS, at its coordinator's end. Each variable is kept by one
 * parameter server, a node of the job `ps` (kept-variables.ts).
 *
 * 1. Every operation goes through the coordinator, also one of a function on a worker, and from
 *    there to the variable's server, through the server's one session. A session's channel delivers
 *    each message once, in order: so the operations on a variable happen once each, in the order in
 *    which the coordinator sends them.
 * 2. What is sent to all servers in one turn of the event loop is a consistent cut. An operation
 *    that was answered before that turn was sent before it, and one that follows from it is sent
 *    after it.
 * 3. An `assignAdd` of a function has the id of its closure and its ordinal. The server remembers
 *    both until the coordinator says that the closure is over; from then on the coordinator lets no
 *    write of an attempt through that a worker may still run.
 * 4. Of two attempts of a closure that run at the same time (the worker of the first was given up,
 *    and came back) the later one's assigns stand: an assign of the earlier one that comes after
 *    has no effect, as if it had come before.
 * 5. A variable lives as long as the session of the server that it was made in. When that is lost,
 *    the operations fail, and with them the cluster; a server that is started again has another
 *    session, without variables. A server that has none can be lost and come back like a worker,
 *    unless the ClusterSpec names it.
 * 6. A read is answered by the one before it, if that is on its way and no write to the variable was
 *    sent since: the server would give both the same value. So many workers that read at once cost
 *    one message of the server.
 */

import { createHash } from 'node:crypto';
import { within } from '../../../base/timer.ts';
import {
  FailedPreconditionError,
  InvalidArgumentError,
  UnavailableError,
} from '../../../errors/errors.ts';
import type { EngineReadiness } from '../../../errors/readiness-report.ts';
import { binding } from '../../../native/native.ts';
import { decode, encode } from '../../../record/encoded-error.ts';
import { ChangeListeners } from '../../closures/change-listeners.ts';
import {
  type Definition,
  definitionOf,
  isArrayFor,
  makeVariable,
  otherShape,
  shapeOf,
  type Variable,
  type VariableValue,
} from '../../variables/variable.ts';
import type { VariableOptions } from '../../variables/variable-options.ts';
import type { Answer, Request, Values, VariableStore } from '../../variables/variable-store.ts';
import { checkLength } from '../wire/reliable-channel.ts';
import type { ServerRequest, ToNode } from '../wire/session-messages.ts';

/** How long `variable()` waits for a parameter server. */
const TIMEOUT_MS = 60_000;

/** The part of a Session that carries operations. */
export interface NodeLine {
  post(message: ToNode): void;
  /** Whether the closure of this id is in flight there, and nowhere settled. */
  isRunning(closure: number): boolean;
}

/** The tasks of the job `ps`. */
export interface ServerTasks {
  /** Those that are ready. */
  readonly servers: { index: number; session: NodeLine }[];
  /** The indexes of those that the program expects; undefined: it takes those that there are. */
  readonly expectedServers: readonly number[] | undefined;
}

type Made = { definition: Definition; server: NodeLine; variable: Variable };
type Pending = {
  server: NodeLine;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
};

export class ParameterServers implements VariableStore {
  readonly #tasks: ServerTasks;
  readonly #sessions: ReadonlyMap<string, NodeLine>;
  readonly #engine: () => EngineReadiness;
  #owner: object = this;
  readonly #changes = new ChangeListeners();
  /** By name; a promise of one that is on its way to its server. */
  readonly #names = new Map<string, Promise<Made>>();
  readonly #made = new Map<string, Made>();
  readonly #pending = new Map<number, Pending>();
  /** By name: a read on its way, with no write sent since. */
  readonly #reads = new Map<string, Promise<unknown>>();
  #lastId = 0;
  /** How many calls of `variable()` wait for a server or its answer. */
  #making = 0;
  /**
   * Sessions that began meanwhile: their threads start when no call waits any more, so that setup
   * functions find what the program makes at its beginning.
   */
  readonly #held = new WeakSet<NodeLine>();
  /** The servers that a variable was made on, or is on its way to. */
  readonly #homes = new WeakSet<NodeLine>();
  /** By closure: the servers that remember an `assignAdd` of it. */
  readonly #additions = new Map<number, Set<NodeLine>>();
  /** By closure and variable: the latest attempt that has assigned (4). */
  readonly #assigned = new Map<number, Map<string, number>>();
  /** The indexes of the servers among which names are shared out, from the first variable on. */
  #places: readonly number[] | undefined;
  /** Why no operation is possible any more. */
  #end: Error | undefined;
  /** `#end` is that the program has closed the cluster. */
  #isClosed = false;

  /**
   * @param sessions - all of the run, also those that are away
   * @param engine - how the connection is
   */
  constructor(
    tasks: ServerTasks,
    sessions: ReadonlyMap<string, NodeLine>,
    engine: () => EngineReadiness,
  ) {
    this.#tasks = tasks;
    this.#sessions = sessions;
    this.#engine = engine;
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
        await variable.assign(definition.type === 0 ? (value[0] as number) : value);
    });
    await Promise.all(asked);
  }

  forget(closure: number): void {
    this.#assigned.delete(closure);
    const servers = this.#additions.get(closure);
    if (servers === undefined) return;
    this.#additions.delete(closure);
    for (const server of servers) server.post(['operate', 0, 'forget', '', closure, 0]);
  }

  // ---------------------------------------------------------------- called by the engine

  /** A server may be ready now. */
  changed(): void {
    this.#changes.notify();
  }

  /** Whether variables are lost with this session. */
  isHome(session: NodeLine): boolean {
    return this.#homes.has(session);
  }

  /** A session has begun: its threads start with what this sends. */
  begin(session: NodeLine): void {
    if (this.#making > 0) this.#held.add(session);
    else session.post(['defined', ...this.definitions]);
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
    const reply = (...answer: Answer): void => worker.post(['answer', id, ...answer]);
    this.#pass(worker, request).then(
      (value) => reply(value),
      (error: unknown) => reply(undefined, encode(error).bytes),
    );
  }

  close(): void {
    this.#isClosed = this.#end === undefined;
    this.fail(new FailedPreconditionError('The cluster is closed'));
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
    const { message } = this.#end as Error;
    if (this.#isClosed) return new FailedPreconditionError(message);
    return new UnavailableError(`The cluster's variables are gone: ${message}`, {
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
    const server = await this.#serverOf(name, ps, timeoutMs);
    const meanwhile = this.#names.get(name);
    if (meanwhile !== undefined) return await meanwhile;
    if (server === undefined) throw this.#unavailable();
    const making = this.#make(definition, initial, server);
    this.#names.set(name, making);
    making.catch(() => this.#names.delete(name));
    this.#changes.notify();
    return await making;
  }

  async #make(definition: Definition, initial: VariableValue, server: NodeLine): Promise<Made> {
    const { name } = definition;
    await this.#ask(server, ['define', name, 0, 0, initial]);
    const ask = (operation: Request[0], value?: VariableValue): Promise<unknown> =>
      this.#ask(server, [operation, name, 0, 0, value]);
    const variable = makeVariable(
      definition,
      {
        read: async () => fitting(definition, await ask('read')),
        assign: (value) => ask('assign', value) as Promise<void>,
        assignAdd: (delta) => ask('assignAdd', delta) as Promise<void>,
      },
      this.#owner,
    );
    binding().bindRemoteVariable(variable);
    const made = { definition, server, variable };
    this.#made.set(name, made);
    for (const session of this.#sessions.values()) {
      if (!this.#held.has(session)) session.post(['defined', definition]);
    }
    return made;
  }

  #endMaking(): void {
    this.#making -= 1;
    if (this.#making > 0) return;
    for (const session of this.#sessions.values()) {
      if (this.#held.delete(session)) session.post(['defined', ...this.definitions]);
    }
  }

  /**
   * The server that is to keep the variable, when it is ready. Undefined: another call makes the
   * variable, or no operation is possible any more.
   */
  async #serverOf(
    name: string,
    ps: number | undefined,
    timeoutMs: number,
  ): Promise<NodeLine | undefined> {
    const { expectedServers: expected } = this.#tasks;
    if (ps !== undefined && expected?.includes(ps) === false) {
      throw new InvalidArgumentError(
        `The variable '${name}' cannot be on ps:${ps}: the ClusterSpec has no such task`,
      );
    }
    let found: NodeLine | undefined;
    const look = (): boolean => {
      const ready = this.#tasks.servers;
      if (this.#places === undefined && ps === undefined && ready.length > 0) {
        this.#places = ready.map(({ index }) => index);
      }
      const index = ps ?? placeOf(name, this.#places);
      found = ready.find((server) => server.index === index)?.session;
      // Now, not when the caller goes on: the server may be lost before that.
      if (found !== undefined && !this.#names.has(name)) this.#homes.add(found);
      return found !== undefined || this.#names.has(name) || this.#end !== undefined;
    };
    await within(timeoutMs, this.#changes.until(look), () => {
      const index = ps ?? placeOf(name, this.#places);
      const why = whyNone(index, this.#engine());
      throw new UnavailableError(
        `The variable '${name}' has no parameter server after ${timeoutMs} ms: ${why}`,
      );
    });
    return found;
  }

  #ask(server: NodeLine, request: ServerRequest): Promise<unknown> {
    if (this.#end !== undefined) return Promise.reject(this.#unavailable());
    const [operation, name, closure] = request;
    if (operation !== 'read') this.#reads.delete(name);
    const known = this.#reads.get(name);
    if (known !== undefined) return known;
    if (operation === 'assignAdd' && closure > 0) {
      const servers = this.#additions.get(closure) ?? new Set();
      this.#additions.set(closure, servers.add(server));
    }
    this.#lastId += 1;
    const id = this.#lastId;
    const promise = new Promise((resolve, reject) => {
      this.#pending.set(id, { server, resolve, reject });
      server.post(['operate', id, ...request]);
    });
    if (operation === 'read') {
      this.#reads.set(name, promise);
      const over = (): void => {
        if (this.#reads.get(name) === promise) this.#reads.delete(name);
      };
      promise.then(over, over);
    }
    return promise;
  }

  async #pass(worker: NodeLine, request: Request): Promise<unknown> {
    const [operation, name, closure, ordinal] = request;
    const made = this.#made.get(name);
    if (made === undefined) throw new InvalidArgumentError(`There is no variable '${name}'`);
    if (operation !== 'read' && closure > 0 && !worker.isRunning(closure)) {
      throw new FailedPreconditionError(
        `The function that writes to the variable '${name}' has ended: another worker was first, or it was cancelled`,
      );
    }
    if (operation === 'assign' && closure > 0 && this.#isLate(closure, name, ordinal))
      return undefined;
    return await this.#ask(made.server, request);
  }

  /** Whether a later attempt of the closure has assigned to the variable (4). */
  #isLate(closure: number, name: string, attempt: number): boolean {
    const byName = this.#assigned.get(closure) ?? new Map<string, number>();
    this.#assigned.set(closure, byName);
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

/** @throws UnavailableError: the server's answer is not of the variable's type and length */
function fitting(definition: Definition, value: unknown): VariableValue {
  if (definition.type === 0 && typeof value === 'number') return value;
  // A copy: the array that a message holds is a view of the message, or of memory of other buffers.
  if (definition.type !== 0 && isArrayFor(definition, value)) return value.slice();
  throw new UnavailableError(
    `The parameter server of the variable '${definition.name}' has answered with what is not ${shapeOf(definition)}`,
  );
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** The index of the server for a name: the same one in each program with as many servers. */
function placeOf(name: string, places: readonly number[] | undefined): number | undefined {
  if (places === undefined || places.length === 0) return undefined;
  return places[createHash('sha256').update(name).digest().readUInt32LE(0) % places.length];
}
