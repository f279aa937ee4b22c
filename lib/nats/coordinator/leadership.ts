/**
 * Holds the cluster for one run: keeps a connection to the servers, and the cluster's key
 * (fence.ts), which it signs every few seconds. A run that has held the cluster once goes on with the
 * next connection before the key is signed again, since JetStream may have no leader for a while.
 * `OtherRuns` is what it hears of others.
 *
 * 1. One look at the key is on its way at a time. Whoever asks for one (`assertHeld`) is served by a
 *    look that begins later.
 * 2. `#state` is how far the run is; `end` makes it 'closed' or 'failed', which it stays.
 */

import type { NatsConnection } from '@nats-io/transport-node';
import { Timer, within } from '../../base/timer.ts';
import type { ClusterSpec } from '../../cluster/cluster-spec.ts';
import { FailedPreconditionError, UnavailableError } from '../../errors/errors.ts';
import {
  type EngineReadiness,
  type Explanation,
  standingBy,
  type WorkerStart,
} from '../../errors/phases.ts';
import { log } from '../../events/spine.ts';
import type { ClusterHost } from '../../pool/queue/strategy.ts';
import type { ModuleHooks } from '../../pool/worker/module.ts';
import { Connection } from '../connection/connection.ts';
import { explainFailure } from '../connection/connection-failure.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import { failureOfJetStream } from '../connection/jetstream.ts';
import {
  type Alive,
  FURTHEST_TOKEN,
  json,
  parseControl,
  type RunInfo,
} from '../wire/control-messages.ts';
import type { MalformedMessages, Subjects } from '../wire/subjects.ts';
import { Fence, heldBy, type Run, takenOver } from './fence.ts';

/** What a new run does if another holds the cluster. */
export type OnHeld = 'takeOver' | 'refuse' | 'standBy';

/** The part of NatsStrategy that the engine reads. */
export type NatsSettings = ModuleHooks & {
  readonly module: URL;
  readonly cluster: string;
  readonly expect: ClusterSpec | undefined;
  readonly minWorkers: number | undefined;
  readonly unavailableAfterMs: number;
  readonly lostAfterMs: number;
  readonly onHeld: OnHeld;
  readonly definition: string | undefined;
  readonly replicas: number;
  readonly workerStart: WorkerStart;
};

/** How often the holder signs the key. */
const SIGN_MS = 4_000;
/** When a look that has failed is tried again, and how often one that stands by looks. */
const RETRY_MS = 1_000;
/** A holder that has not signed for so long is asked whether it lives. */
const UNSIGNED_MS: number = 2 * SIGN_MS;
/** How long to wait until JetStream has stored that the run has ended. */
const RELEASE_MS = 1_000;
/** How long a run that lives may take to answer. */
const ANSWER_MS = 5_000;
/** How long to wait for any run with a greater token to answer. */
const RIVAL_MS = 1_500;

/** A run, as all parts of its coordinator's end see it. */
export type RunContext = {
  readonly host: ClusterHost;
  readonly settings: NatsSettings;
  /** What the run says of itself. */
  readonly own: Omit<RunInfo, 'token'>;
  readonly subjects: Subjects;
  readonly malformed: MalformedMessages;
};

export type LeadershipOptions = RunContext & {
  readonly connection: NatsConnectionOptions;
  /** There is a new connection, without subscriptions yet. */
  onConnection(nats: NatsConnection): void;
  /** This run holds the cluster: nodes may be sent messages over this connection. */
  onHeld(nats: NatsConnection): void;
  onDown(): void;
  /** This run does not hold the cluster, and never will again. */
  onLost(error: Error): void;
  /** `state` has changed. */
  onChange(): void;
};

type Asked = { resolve: () => void; reject: (error: Error) => void };

export class Leadership {
  readonly connection: Connection;
  readonly others: OtherRuns;
  readonly #fence: Fence;
  readonly #options: LeadershipOptions;
  #state: EngineReadiness = { phase: 'connecting' };
  /** The server refuses a subject that the coordinator needs. */
  #forbidden: Explanation | undefined;
  #unavailable: Timer | undefined;
  #next: Timer | undefined;
  /** The look that is under way. */
  #looking: Promise<void> | undefined;
  /** Those that wait for a look that begins after they have asked. */
  #asked: Asked[] = [];
  /** The greatest token that any message has named. */
  #heard = 0;
  /** A rival of this token has answered: nodes are its. */
  #conceded = 0;
  /** While standing by: the holder's key as it was seen last to change, and when. */
  #seen: { revision: number; at: number } | undefined;
  /** Why the run is over. */
  #end: Error | undefined;
  /** Our token; undefined until this run has held the cluster for the first time. */
  token: number | undefined;
  /** We have written the key again after JetStream lost it: the lost key may name a newer run. */
  #isRestored = false;
  /** How many connections there have been. */
  connections = 0;

  constructor(options: LeadershipOptions) {
    const { settings, own, subjects, connection } = options;
    const { cluster, replicas } = settings;
    this.#options = options;
    this.#fence = new Fence(cluster, replicas, own, connection);
    this.#watchUnavailable();
    const inbox = subjects.inbox('coordinator');
    this.connection = new Connection(`allstop ${cluster}`, inbox, connection, {
      onUp: (nats) => this.#onUp(nats),
      onDown: (cause, servers) => this.#onDown(cause, servers),
      onRefused: (error, server) => this.#onRefused(error, server),
    });
    this.others = new OtherRuns(options, this);
  }

  get state(): EngineReadiness {
    if (this.#forbidden === undefined || this.#end !== undefined) return this.#state;
    return { phase: 'forbidden', ...this.#forbidden };
  }

  /**
   * Resolves when the key has been signed since the call: this run held the cluster then.
   *
   * @throws (rejects) FailedPreconditionError: another run holds it, or this one is over;
   *   UnavailableError: JetStream has not answered for `unavailableAfterMs`
   */
  async assertHeld(): Promise<void> {
    if (this.#end !== undefined) throw this.#end;
    const asked = new Promise<void>((resolve, reject) => {
      this.#asked.push({ resolve, reject });
    });
    this.#look();
    const { unavailableAfterMs, cluster } = this.#options.settings;
    await within(unavailableAfterMs, asked, () => {
      throw new UnavailableError(
        `Whether this program still holds the cluster '${cluster}' could not be read for ${unavailableAfterMs} ms: ${this.#state.cause ?? 'JetStream does not answer'}`,
      );
    });
  }

  /**
   * Called when a message names the token of another run; `isItself`: that run has sent it. If the
   * token is greater than ours, the key is read again, which alone decides (unless JetStream has
   * lost the key). If this run still holds the cluster, our token is raised above the other one,
   * because nodes that remember the other token would ignore us; not if that run lives.
   */
  doubt(token: number, isItself = false): void {
    const own = this.token;
    if (own === undefined || token <= own || this.tooFarBy(token) > 0) return;
    if (token <= this.#conceded || (token <= this.#heard && !isItself)) return;
    this.#heard = Math.max(this.#heard, token);
    this.#look();
  }

  /**
   * How far a token is ahead of ours that `doubt` ignores, because it is forged, or because the clock
   * of this machine is behind; 0: `doubt` does not ignore it.
   */
  tooFarBy(token: number): number {
    const ahead = token - (this.token ?? token);
    return ahead > FURTHEST_TOKEN ? ahead : 0;
  }

  /** Ends the run, with its last state, because of `error`. The connection stays until `close()`. */
  end(state: EngineReadiness, error: Error): void {
    if (this.#end !== undefined) return;
    this.#end = error;
    this.#state = state;
    this.#unavailable?.clear();
    this.#next?.clear();
    for (const { reject } of this.#asked) reject(error);
    this.#asked = [];
  }

  /** Called after `end`: notes the end in the cluster's key, if that is possible, and disconnects. */
  async close(): Promise<void> {
    const { nats } = this.connection;
    if (nats !== undefined) {
      const release = async (): Promise<void> => {
        await this.#looking; // which may take the cluster yet
        if (this.token !== undefined) await this.#fence.release(nats);
      };
      const released = release().catch(() => undefined);
      await within(RELEASE_MS, released, () => undefined);
    }
    await this.connection.close();
  }

  #enter(state: EngineReadiness): void {
    const { phase, cause } = this.#state;
    // Each failed attempt to connect sets the same state again.
    if (state.phase !== 'ready' && phase === state.phase && cause === state.cause) return;
    this.#state = state;
    this.#options.onChange();
  }

  #watchUnavailable(): void {
    const { unavailableAfterMs } = this.#options.settings;
    this.#unavailable ??= new Timer(unavailableAfterMs, () => {
      const { cause, remedy } = this.#state;
      const hint = remedy === undefined ? '' : `. What to do: ${remedy}`;
      const why = cause === undefined ? '' : `: ${cause}${hint}`;
      const text = `The NATS servers were not available for ${unavailableAfterMs} ms${why}`;
      this.#options.onLost(new UnavailableError(text));
    });
  }

  #areAvailable(): void {
    this.#unavailable?.clear();
    this.#unavailable = undefined;
  }

  #onUp(nats: NatsConnection): void {
    if (this.#end !== undefined) return;
    this.connections += 1;
    if (this.connections > 1) {
      log('%s: connected again', this.#options.settings.cluster);
      this.#options.host.tell('reconnected');
    }
    this.#forbidden = undefined;
    this.#options.onConnection(nats);
    if (this.token === undefined) this.#enter({ phase: 'jetstream' });
    else this.#onHeld(nats);
    this.#look();
  }

  #onDown(cause: unknown, servers: string): void {
    if (this.#end !== undefined) return;
    this.#next?.clear();
    this.#watchUnavailable();
    this.#options.onDown();
    const why = explainFailure(cause, servers);
    if (this.#state.phase !== 'connecting') {
      const text = `The connection to the NATS servers is lost: ${why.cause}`;
      log('%s: disconnected: %s', this.#options.settings.cluster, text);
      this.#options.host.tell('disconnected', new UnavailableError(text, { cause }));
    }
    if (cause instanceof UnavailableError) this.#options.onLost(cause);
    else this.#enter({ phase: 'connecting', ...why });
  }

  #onRefused(error: Error, server: string): void {
    log('%s: the server refuses: %s', this.#options.settings.cluster, error.message);
    if (error.name !== 'PermissionViolationError') return;
    // Every subject is needed, so any missing permission keeps the cluster from being ready.
    this.#forbidden = explainFailure(error, server);
    this.#options.onChange();
  }

  #lookIn(ms: number): void {
    this.#next?.clear();
    this.#next = new Timer(ms, () => this.#look());
  }

  /** Takes or signs the key, unless that is on its way; tells those that have asked. */
  #look(): void {
    const { nats } = this.connection;
    if (this.#looking !== undefined || this.#end !== undefined || nats === undefined) return;
    this.#next?.clear();
    const asked = this.#asked;
    this.#asked = [];
    const heard = this.#heard;
    this.#looking = this.#hold(nats, heard).then((how) => {
      this.#looking = undefined;
      if (this.#end !== undefined) {
        for (const { reject } of asked) reject(this.#end);
        return;
      }
      if (how === 'held') for (const { resolve } of asked) resolve();
      else this.#asked.unshift(...asked);
      // Meanwhile a new connection or a message with a greater token may have come.
      const isOutdated = this.connection.nats !== nats || this.#heard > heard;
      const isAsked = how === 'held' && this.#asked.length > 0;
      if (isOutdated || isAsked) this.#look();
      else this.#lookIn(how === 'held' ? SIGN_MS : RETRY_MS);
    });
  }

  async #hold(nats: NatsConnection, heard: number): Promise<'held' | 'not-held'> {
    const before = this.token;
    try {
      if (!(await this.#take(nats, heard)) || this.#end !== undefined) return 'not-held';
      if (this.connection.nats !== nats) return 'held';
      if (this.#state.phase !== 'ready' || this.token !== before) this.#onHeld(nats);
      this.others.sayAlive();
      return 'held';
    } catch (error) {
      this.#fence.forget();
      if (this.#end === undefined) this.#onNotHeld(nats, error);
      return 'not-held';
    }
  }

  /**
   * Takes the cluster, or signs that this run still holds it. Writes the key again if JetStream
   * has lost it (the store was wiped).
   *
   * `heard`: the greatest token that any message has named, for example one that a node remembers
   * of an earlier run. If `heard` is greater than this run's token although the key names this
   * run, this believes the key and raises the token above `heard`, as a node ignores a
   * run with a smaller token than the greatest that it remembers; but not if a rival is alive, who
   * holds another key, or whose key was lost.
   *
   * @returns whether this run holds the cluster; false: it may not take it yet
   * @throws (rejects) FailedPreconditionError: a newer run holds the cluster; errors of JetStream
   */
  async #take(nats: NatsConnection, heard: number): Promise<boolean> {
    const { cluster } = this.#options.settings;
    while (this.#end === undefined) {
      const own = this.token;
      if (own !== undefined && own >= heard && (await this.#fence.sign(nats, own))) return true;
      const { run: there, revision } = await this.#fence.read(nats);
      const isOurs = there?.run === this.#options.own.run;
      if (!isOurs && own !== undefined && there !== undefined && there.token > own) {
        throw takenOver(cluster, there);
      }
      let isRaised = own === undefined || (isOurs && there.token < heard);
      if (isOurs && isRaised && (await this.others.hasRival())) {
        this.#conceded = Math.max(this.#conceded, heard);
        if (this.#isRestored) throw takenOver(cluster);
        isRaised = false;
      }
      if (own === undefined && there !== undefined && !isOurs) {
        if (!(await this.#mayTake(there, revision))) return false;
      }
      // After a wipe our token stays as it is: a newer run may write the key, too, and has to win
      // by its greater token.
      const least = isRaised ? Math.max(there?.token ?? 0, heard) + 1 : 0;
      const token = Math.max(own ?? Date.now(), isOurs ? there.token : 0, least);
      if (this.#end !== undefined) return false;
      if (!(await this.#fence.write(nats, token, revision))) continue; // another coordinator has written it
      if (!isOurs) this.#isRestored = there === undefined && own !== undefined;
      this.token = token;
      return true;
    }
    return false;
  }

  /**
   * Whether a run that has never held the cluster may take it: one that was closed, or does not answer
   * any more, holds nothing.
   */
  async #mayTake(run: Run, revision: number): Promise<boolean> {
    const { onHeld, cluster } = this.#options.settings;
    if (onHeld === 'takeOver' || run.ended !== undefined) return true;
    const now = performance.now();
    const isSigned = this.#seen !== undefined && this.#seen.revision !== revision;
    if (this.#seen === undefined || isSigned) this.#seen = { revision, at: now };
    const isQuiet = now - this.#seen.at > UNSIGNED_MS || this.#state.phase !== 'standby';
    const lives = isSigned || !isQuiet || (await this.others.isAlive(run.run));
    if (!lives) return true;
    if (onHeld === 'refuse') throw heldBy(cluster, run);
    this.#areAvailable();
    this.#enter({ phase: 'standby', ...standingBy(run.host, run.pid) });
    return false;
  }

  #onNotHeld(nats: NatsConnection, error: unknown): void {
    if (error instanceof FailedPreconditionError || error instanceof UnavailableError) {
      this.#options.onLost(error);
      return;
    }
    if (this.connection.nats !== nats || this.#state.phase === 'ready') return;
    const why = explainFailure(
      failureOfJetStream(error, nats, this.#options.connection),
      nats.getServer(),
    );
    this.#enter({ phase: 'jetstream', ...why });
  }

  #onHeld(nats: NatsConnection): void {
    this.#areAvailable();
    this.#enter({ phase: 'ready' });
    this.others.say();
    this.#options.onHeld(nats);
  }
}

/**
 * The other coordinators of the same cluster, as far as they can be heard; all messages are on the
 * subject `who`, where all nodes and coordinators listen.
 *
 * 1. A run that holds the cluster says so (`who`) when it begins to, to the nodes above all; and again
 *    and again (`alive`), to coordinators.
 * 2. A run that is asked (`ask`) answers (`alive`, to the one that asked) only after it has signed the
 *    cluster's key since: so who answers held a key after the question.
 * 3. If this run has signed, another has answered then, and this run has signed again, each has a key
 *    of its own: in one key nobody takes the cluster back. The two are told, each by itself.
 */
export class OtherRuns {
  readonly #options: RunContext;
  readonly #leadership: Leadership;
  /** Those that this run meets now, or has met: each once. */
  readonly #met = new Set<string>();
  readonly #answers = new Set<(alive: Alive) => void>();

  constructor(options: RunContext, leadership: Leadership) {
    this.#options = options;
    this.#leadership = leadership;
  }

  /**
   * Receives a message from another coordinator or a doctor (`who` with token 0, to which only nodes
   * reply).
   *
   * @returns false if it is malformed
   */
  receive(data: Uint8Array, reply: string | undefined): boolean {
    const message = parseControl(data, 'who', 'ask', 'alive');
    if (message === undefined) return false;
    const { run } = message;
    if (run === this.#options.own.run) return true;
    if (message.kind === 'ask') {
      if (message.of === this.#options.own.run || message.of === '') void this.#answer(run);
      return true;
    }
    this.#leadership.doubt(message.token, true);
    if (message.kind === 'who') {
      // An older run that does not know of this run yet learns of it by our `who`.
      const isOlder = message.token < (this.#leadership.token ?? 0);
      if (isOlder && (reply ?? '') === '') this.say();
      return true;
    }
    if (message.to === this.#options.own.run) for (const tell of this.#answers) tell(message);
    else void this.#meet(run);
    return true;
  }

  /** Tells all nodes and coordinators that this run holds the cluster, if we believe so. */
  say(): void {
    const { token, state } = this.#leadership;
    if (state.phase === 'ready') this.#send({ kind: 'who', run: this.#options.own.run, token });
  }

  /** Tells coordinators that this run holds the cluster; `to`: the one that has asked. */
  sayAlive(to?: string): void {
    const { token, state } = this.#leadership;
    if (state.phase === 'ready') this.#send({ kind: 'alive', ...this.#options.own, token, to });
  }

  /** Whether the run answers that it holds the cluster. */
  async isAlive(run: string): Promise<boolean> {
    return (await this.#ask(run, ANSWER_MS, (alive) => alive.run === run)) !== undefined;
  }

  /** Whether any run with a greater token answers that it holds a key. */
  async hasRival(): Promise<boolean> {
    const own = this.#leadership.token ?? 0;
    return (await this.#ask('', RIVAL_MS, ({ token }) => token > own)) !== undefined;
  }

  async #ask(of: string, ms: number, is: (alive: Alive) => boolean): Promise<Alive | undefined> {
    let tell = (_alive: Alive): void => {};
    const answered = new Promise<Alive>((resolve) => {
      tell = (alive) => is(alive) && resolve(alive);
    });
    this.#answers.add(tell);
    this.#send({ kind: 'ask', run: this.#options.own.run, of });
    const answer = await within(ms, answered, () => undefined);
    this.#answers.delete(tell);
    return answer;
  }

  async #answer(to: string): Promise<void> {
    if (this.#leadership.state.phase !== 'ready') return;
    await this.#leadership.assertHeld().then(
      () => this.sayAlive(to),
      () => {},
    );
  }

  /** Another run says that it holds the cluster, as this one believes to do. */
  async #meet(run: string): Promise<void> {
    if (this.#met.has(run) || this.#leadership.state.phase !== 'ready') return;
    this.#met.add(run);
    try {
      await this.#leadership.assertHeld();
      const other = await this.#ask(run, ANSWER_MS, (alive) => alive.run === run);
      if (other === undefined) {
        this.#met.delete(run);
        return;
      }
      await this.#leadership.assertHeld();
      warnOfTwo(this.#options.settings.cluster, other, this.#leadership.token ?? 0);
    } catch {
      this.#met.delete(run); // this run has lost the cluster, and is told so, or JetStream is away
    }
  }

  #send(message: object): void {
    this.#leadership.connection.publish(this.#options.subjects.who, json(message));
  }
}

function warnOfTwo(cluster: string, { host, pid, since, token }: Alive, own: number): void {
  const which =
    token > own ? 'which is newer, and has the workers that hear both' : 'which is older';
  process.emitWarning(
    `Another program runs the cluster '${cluster}', too (${host}, pid ${pid}, since ${since}), ${which}. ` +
      'Each holds a key of its own, since they use different JetStreams (another `jetstream.domain`): ' +
      'end one of the two, or give it another cluster name',
    { code: 'ALLSTOP_TWO_COORDINATORS' },
  );
}
