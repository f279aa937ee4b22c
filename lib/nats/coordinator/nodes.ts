/**
 * The nodes that serve a run: lets them in, follows what becomes of each, and loses them.
 *
 * 1. A node has a call through one session, and a session has one node. When a session is
 *    over, nothing is accepted from it any more, and its calls are returned to the queue.
 * 2. A session whose node probes find gone or silent (probes.ts) is *away*: its task is free and
 *    its calls are returned to the queue, but it is not over. With the node's next sign of
 *    life it goes on: what has ended there is accepted, the first result counts.
 *    It is over when its node says so, or is in another session.
 * 3. A node may take the task of one on its host that nobody hears: most often it was started again.
 *    So the calls of the other are queued again, unless one of them may not begin twice: then it
 *    keeps all until it counts as lost; if it is back before, it ends them and leaves.
 */

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { NatsConnection } from '@nats-io/transport-node';
import { messageOf } from '../../base/thrown-value.ts';
import { Timer, within } from '../../base/timer.ts';
import { StopArbiter, type StopMessage } from '../../coordinator/stop-relay.ts';
import { UnavailableError } from '../../errors/errors.ts';
import { failedRemedy, type Loss, lost, nodeRemedy } from '../../errors/phases.ts';
import { log } from '../../events/spine.ts';
import type { Call } from '../../pool/queue/call.ts';
import type { Cancellation, ClusterHost } from '../../pool/queue/strategy.ts';
import { decode } from '../../record/encoded-error.ts';
import { ParameterServers } from '../variables/parameter-servers.ts';
import { json, type NodeInfo, parseControl, parseUnprintable } from '../wire/control-messages.ts';
import { frameBytes, sharedWindowBytes } from '../wire/reliable-channel.ts';
import { type FromNode, packStop, type ToNode } from '../wire/session-messages.ts';
import { cleaned } from '../wire/shapes.ts';
import {
  admit,
  type Fingerprints,
  type Refused,
  RefusedNodes,
  refuseUnprintable,
} from './admission.ts';
import { Dispatcher } from './dispatcher.ts';
import { Probes, type ProbesOptions } from './probes.ts';
import { Session } from './session.ts';
import { AddressChecks, type ClusterTask, ClusterTasks, stuckThread } from './tasks.ts';

/** The most nodes that were welcomed and have not answered. */
const MOST_UNCONFIRMED = 256;
/** How long nodes have to acknowledge the end of their sessions. */
const END_MS = 1_000;
/** How long after the grace period a node may take to report the end of a function. */
const REPORT_MS = 2_000;
/** How long a session is kept whose node is away, and whose task another node has taken. */
const LONGEST_AWAY_MS = 600_000;
/** The same, if it has nothing to offer: so long a node waits for us that we do not reach. */
const AWAY_MS = 90_000;

/** How long our own work waits after a broadcast, so that processes on this machine stop first. */
const QUIET_MS = 10;

/** What the nodes of a run share with its engine. */
export type NodesOptions = ProbesOptions & {
  /** The run cannot go on. */
  fail(error: Error): void;
};

export class Nodes {
  readonly #options: NodesOptions;
  readonly #host: ClusterHost;
  readonly sessions: Map<string, Session> = new Map();
  readonly tasks: ClusterTasks;
  readonly servers: ParameterServers;
  readonly dispatcher: Dispatcher;
  readonly refused: RefusedNodes = new RefusedNodes();
  readonly #byNode = new Map<string, Session>();
  /** The sessions that may have calls which were given up: all that are away, and some others. */
  readonly #givenUp = new Set<Session>();
  readonly #probes: Probes;
  readonly #addressChecks: AddressChecks;
  /** Decides which stop is the stop record of the run. */
  readonly stops: StopArbiter;
  /** Work that waits until the broadcast of a stop was heard. Undefined: nothing has to wait. */
  #waiting: (() => void)[] | undefined;
  #quiet: Timer | undefined;
  #cancelWatch: Timer | undefined;
  /** What the nodes that are there export; undefined until one has told. */
  functions: readonly string[] | undefined;
  /** How many nodes were lost. */
  lost = 0;
  #isOver = false;

  constructor(options: NodesOptions) {
    const { host, settings, leadership } = options;
    this.#options = options;
    this.#host = host;
    this.tasks = new ClusterTasks(settings);
    this.dispatcher = new Dispatcher(host, this.sessions);
    this.servers = new ParameterServers(this.tasks, this.sessions, {
      state: () => leadership.state,
      assertHeld: () => leadership.assertHeld(),
    });
    this.#addressChecks = new AddressChecks(this.tasks, () => host.changed());
    this.stops = new StopArbiter(host.coordinator, (stop, isHeard) => this.#onStop(stop, isHeard));
    this.#probes = new Probes(this.sessions, options, {
      onReply: (session, { token, session: id }) => {
        this.#onHeard(session);
        leadership.doubt(token);
        const aheadMs = leadership.tooFarBy(token);
        if (aheadMs > 0 && this.tasks.noteIgnored(session, aheadMs)) host.changed();
        if (session.isConfirmed && id !== session.id) this.#lose(session, lost.leftSession);
      },
      onSilent: (session, why) => {
        const task = this.tasks.named(session);
        if (task.session === session && task.enter('silent', why)) host.changed();
      },
      onLost: (session, loss) => {
        if (session.isConfirmed) this.#setAway(session, loss);
        else this.#lose(session, loss);
      },
      onRound: () => {
        if (this.refused.expire()) host.changed();
        this.#expire();
      },
    });
  }

  /** Those that take calls, or will. */
  get staying(): Session[] {
    return [...this.sessions.values()].filter(({ isStaying }) => isStaying);
  }

  /** This run holds the cluster, over a connection that may be new. */
  start(nats: NatsConnection): void {
    for (const session of this.sessions.values()) {
      // Frames were cut to the length that the last connection permitted.
      if (session.channel.fits(nats.info?.max_payload)) session.channel.resume();
      else this.#lose(session, lost.tooLong);
    }
    this.#probes.start(nats);
    this.#addressChecks.start();
  }

  /** Nothing is asked of the nodes any more, until `start`. */
  pause(): void {
    this.#probes.stop();
    this.#addressChecks.stop();
  }

  /** The run is over: nothing is asked of the nodes, nor given to them. */
  end(): void {
    this.#hurry();
    this.#isOver = true;
    this.pause();
    this.#addressChecks.close();
    this.#cancelWatch?.clear();
    this.dispatcher.hold(false);
  }

  /** Posts a message to each node. */
  post(message: ToNode): void {
    for (const session of this.sessions.values()) session.post(message);
  }

  cancel(call: Call, cancellation: Cancellation): void {
    if (this.#waiting !== undefined) {
      this.#waiting.push(() => this.cancel(call, cancellation));
      return;
    }
    for (const { calls } of this.sessions.values()) {
      if (calls.cancel(call, cancellation) && cancellation.replace) {
        this.#watchCancelled(this.#host.cancelGraceMs + REPORT_MS);
      }
    }
  }

  /**
   * The run has a stop record: broadcasts it, which only makes it known sooner, and then announces it
   * to each node. `isHeard`: a node has broadcast it.
   */
  #onStop(record: StopMessage, isHeard: boolean): void {
    if (this.#isOver) return;
    const { subjects, own, leadership } = this.#options;
    const stop = fromHere(record);
    if (!isHeard) {
      leadership.connection.publish(subjects.stop(own.run), packStop(stop));
      leadership.connection.flush();
    }
    this.#waiting = [() => this.post({ kind: 'stopped', stop })];
    this.#quiet = new Timer(QUIET_MS, () => this.#hurry());
  }

  /** Does now what waits for the broadcast to be heard. */
  #hurry(): void {
    this.#quiet?.clear();
    const works = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const work of works) work();
  }

  /** Ends all sessions. Resolves when the nodes that are there know of it, or after END_MS. */
  async close(): Promise<void> {
    const sessions = [...this.sessions.values()];
    this.post({ kind: 'end', isClosed: true });
    if (this.#options.leadership.connection.nats !== undefined) {
      const there = sessions.filter(({ isAway }) => !isAway);
      const drained = Promise.all(there.map(({ channel }) => channel.drained()));
      await within(END_MS, drained, () => {});
    }
    this.sessions.clear(); // first, so that no session counts as lost
    for (const session of sessions) session.close();
    for (const task of this.tasks.all) {
      task.endSession(false);
      task.enter('closed');
    }
  }

  /** Receives what nodes say that are in no session, or leave theirs. */
  hello(data: Uint8Array, fingerprints: Fingerprints): void {
    const hello = parseControl(data, 'hello', 'bye');
    if (hello === undefined) {
      const odd = parseUnprintable(data);
      if (odd === undefined) this.#options.malformed.drop('a hello');
      else this.#refuse(odd.info, refuseUnprintable(odd.info, odd.names, this.tasks));
      return;
    }
    if (hello.kind === 'bye') {
      const leaver = this.#byNode.get(hello.node);
      if (leaver?.id === hello.session) {
        this.#lose(leaver, leaver.calls.running > 0 ? lost.hasAbandoned : lost.hasLeft);
      }
      return;
    }
    const { info } = hello;
    const definition = fingerprints.module;
    const known = this.#byNode.get(info.node);
    if (known !== undefined) {
      if (info.session === known.id) {
        this.#onHeard(known);
        known.channel.resume();
        return;
      }
      if (!known.isConfirmed) {
        this.#welcome(known, definition);
        return;
      }
      this.#lose(known, lost.leftSession);
    }
    // Those that have not answered: their hellos may be forged.
    const unconfirmed = [...this.sessions.values()].filter(({ isConfirmed }) => !isConfirmed);
    if (unconfirmed.length >= MOST_UNCONFIRMED) return; // the node repeats its hello
    const admission = admit(info, this.tasks, fingerprints);
    if ('refusal' in admission) {
      this.#refuse(info, admission);
      return;
    }
    const { session } = admission;
    if (session !== undefined)
      this.#setAway(session, lost.gone, undefined, session.calls.hasUnrepeatable);
    this.#begin(admission, info, definition);
  }

  /** Receives a frame of a session. */
  frame(subject: string, data: Uint8Array): void {
    const session = this.sessions.get(subject.slice(subject.lastIndexOf('.') + 1));
    if (session === undefined) return; // the session is over
    this.#onHeard(session);
    if (!session.channel.receive(data)) this.#options.malformed.drop('a frame');
  }

  #begin(task: ClusterTask, info: NodeInfo, definition: string): void {
    const { subjects, settings, leadership } = this.#options;
    const { connection } = leadership;
    this.refused.forget(info.node);
    const id = randomUUID();
    const subject = subjects.down(id);
    const session: Session = new Session(id, info, task.index, this.#host, {
      maxFrameBytes: frameBytes(connection.nats?.info?.max_payload),
      windowBytes: () => sharedWindowBytes(this.sessions.size),
      send: (frame) => connection.publish(subject, frame),
      onMessage: (message) => this.#onMessage(task, session, message),
      isElsewhere: (name) =>
        this.staying.some(({ status }) => status.functions?.includes(name) === true),
    });
    const isSpare = this.tasks.add(task) || task.phase === 'left';
    task.beginSession(session, isSpare);
    this.sessions.set(id, session);
    this.#byNode.set(info.node, session);
    log('%s: %s:%d is %s (pid %d)', settings.cluster, task.job, task.index, info.host, info.pid);
    this.#welcome(session, definition);
    this.servers.begin(session);
    const { stop } = this.stops;
    if (stop !== undefined) session.post({ kind: 'stopped', stop: fromHere(stop) });
    else this.dispatcher.add(session);
    this.#host.changed();
  }

  /** Sends the welcome; again for each hello, until the node has answered in the session. */
  #welcome({ id, task, info }: Session, definition: string): void {
    const { cancelGraceMs, retries } = this.#host;
    const { unavailableAfterMs, setup, teardown } = this.#options.settings;
    const hooks = { setup, teardown };
    const times = { cancelGraceMs, retries, unavailableAfterMs };
    this.#say(info, { kind: 'welcome', session: id, task, definition, ...times, ...hooks });
  }

  #refuse(info: NodeInfo, { task, refusal }: Refused): void {
    const { phase, cause, remedy } = refusal;
    this.refused.note(info, refusal, task);
    if (task !== undefined) {
      task.setNode(info);
      if (task.enter(refusal.phase, refusal)) this.#host.changed();
    }
    this.#say(info, { kind: 'refused', phase, why: `${cause}: ${remedy}` });
  }

  /** Sends a node what goes through no session. */
  #say({ node }: NodeInfo, message: object): void {
    const { own, subjects, leadership } = this.#options;
    const { connection, token } = leadership;
    connection.publish(subjects.node(node), json({ ...message, run: own.run, token }));
  }

  /** Called for each sign that the node is alive. */
  #onHeard(session: Session): void {
    const wasThere = session.contact.isThere && !session.isAway;
    session.contact.heard();
    const task = this.tasks.named(session);
    if (wasThere && task.phase !== 'silent') return;
    if (session.note('back')) {
      if (task.session === undefined) {
        task.resumeSession(session);
        this.tasks.matchSpares();
        if (this.stops.stop === undefined) this.dispatcher.add(session);
      } else session.note('leaving'); // another node has the task: this one finishes what it has
      session.takeBack();
      this.#letGo(session);
    }
    this.#onStatus(task, session);
  }

  #onMessage(task: ClusterTask, session: Session, message: FromNode | undefined): void {
    const { dispatcher, servers } = this;
    const isOfTask = task.session === session;
    switch (message?.kind) {
      case undefined:
        this.#options.malformed.drop('a message of a session');
        // A third client has used the number of a frame: the node's own frame with that number
        // will be dropped as a copy. Only a new session helps.
        this.#lose(session, lost.malformed);
        return;
      case 'results':
      case 'returned':
        if (message.kind === 'returned') session.calls.takeReturned(message);
        else {
          for (const result of message.results) {
            const call = session.calls.remove(result.id);
            if (call === undefined) continue;
            dispatcher.measure(call.work.name, result.us);
            for (const other of this.#givenUp) other.calls.cancelDuplicate(call);
            session.calls.takeResult(call, result);
          }
        }
        this.#letGo(session);
        dispatcher.freed(session); // it has fewer calls than before
        return;
      case 'progress':
      case 'overdue': {
        const call = session.calls.ofAttempt(message);
        if (call === undefined) return;
        if (message.kind === 'overdue') this.#host.overdue(call);
        else this.#host.progressed(call, message.values);
        return;
      }
      case 'status':
        this.#onStatus(task, session);
        return;
      case 'stop':
        this.stops.hear(message.stop);
        return;
      case 'thread': {
        const { cause } = message;
        const error = cause === null ? undefined : decode(cause).value;
        if (!isOfTask) return;
        if (error instanceof Error) this.#host.tell('workerLost', task.info, error);
        else this.#host.tell('workerStuck', stuckThread(task));
        return;
      }
      case 'operate':
        servers.operate(session, message.id, message.request);
        return;
      case 'answer':
        servers.answered(session, message.id, message.answer);
        return;
      case 'leaving':
        session.note('leaving');
        // Calls that the node has not begun can begin on another node.
        session.calls.recall();
        this.#onStatus(task, session);
        return;
      case 'setup-failed':
        session.note('setup-failed');
        this.#failIfHopeless(decode(message.cause).value);
        return;
      case 'failed': {
        if (!isOfTask) return;
        const error = decode(message.cause).value;
        const isKnown = task.phase === 'import-failed' || task.phase === 'setup-failed';
        const why = { cause: messageOf(error), remedy: failedRemedy };
        task.enter(isKnown ? task.phase : 'failed', why);
        this.#lose(session, lost.hasFailed, error);
        this.tasks.nodeFailed();
        this.#failIfHopeless(error);
      }
    }
  }

  /** The node's status has changed, or how it stands with its session. */
  #onStatus(task: ClusterTask, session: Session): void {
    const { phase, cause, functions } = session.status;
    if (task.session !== session) {
      if (!session.isAway) this.#letGo(session);
      return;
    }
    if (functions !== undefined) this.#lookAtFunctions();
    const why = cause === undefined ? {} : { cause, remedy: nodeRemedy };
    if (!session.isConfirmed) task.enter('connecting');
    else task.enter(session.isLeaving ? 'leaving' : phase, why);
    this.#host.changed();
    if (task.isReady && session.note('ready')) this.#host.tell('workerStarted', task.info);
    this.#letGo(session);
    this.dispatcher.changed(session);
    if (task.job === 'ps') this.servers.changed();
  }

  /** Those that the nodes have which are there. */
  #lookAtFunctions(): void {
    const lists = this.staying.flatMap(({ status }) =>
      status.functions === undefined ? [] : [status.functions],
    );
    const names = new Set(lists.flat());
    this.functions = lists.length === 0 ? undefined : [...names];
    this.dispatcher.mix(lists.some(({ length }) => length !== names.size));
  }

  /** Ends the session of a node that wants to leave, once it has no functions any more. */
  #letGo(session: Session): void {
    if (session.calls.running > 0 || !session.note('let-go')) return;
    session.post({ kind: 'end', isClosed: false });
    void session.channel.drained().then(() => this.#lose(session, lost.hasLeft));
  }

  #failIfHopeless(error: unknown): void {
    if (this.tasks.areHopeless && error instanceof Error) this.#options.fail(error);
  }

  /** Ends a session. `cause`: the node's error, which its task already shows. */
  #lose(session: Session, loss: Loss, cause?: unknown): void {
    if (!this.sessions.has(session.id)) return;
    const { subjects, leadership } = this.#options;
    this.#setAway(session, loss, cause);
    this.sessions.delete(session.id);
    this.#givenUp.delete(session);
    const { node } = session.info;
    if (this.#byNode.get(node) === session) this.#byNode.delete(node);
    // An empty message ends the session at a node that is still alive.
    leadership.connection.publish(subjects.down(session.id), Buffer.alloc(0));
    if (!session.isConfirmed) {
      this.tasks.forget(session);
      this.tasks.matchSpares();
    }
    session.close();
  }

  /**
   * The node counts as lost: its task is free, and its calls are queued again. `keepsCalls`: its task
   * alone is free; it may be back in time.
   */
  #setAway(session: Session, loss: Loss, cause?: unknown, keepsCalls = false): void {
    const { how, remedy } = loss;
    const lives = loss === lost.leftSession;
    const wasReady = session.status.phase === 'ready' || session.isLeaving;
    // One that is leaving already has its task all the same.
    if (!session.note(keepsCalls ? 'leaving' : 'away') && !keepsCalls) return;
    const { dispatcher, servers } = this;
    if (!keepsCalls) this.#givenUp.add(session);
    const { info, task: index } = session;
    dispatcher.remove(session);
    this.#lookAtFunctions();
    const task = this.tasks.named(session);
    const name = `${info.job}:${index}`;
    if (task.session !== session) {
      session.giveUp(new UnavailableError(`Worker ${name} ${how}`), lives);
      dispatcher.wake();
      return;
    }
    const hasLeft = loss === lost.hasLeft;
    if (!hasLeft) this.lost += 1;
    const error = new UnavailableError(
      `Worker ${name} (${info.host}, pid ${info.pid}) ${how}`,
      cause === undefined ? {} : { cause },
    );
    const isNamed = info.job === 'ps' && this.tasks.expectedServers?.includes(index) === true;
    const isNeeded = servers.isHome(session) || (isNamed && wasReady);
    task.endSession(!hasLeft);
    if (cause === undefined)
      task.enter(hasLeft ? 'left' : 'lost', { cause: error.message, remedy });
    // The task of a node that never answered may be forgotten: it must use up no spare before.
    if (session.isConfirmed) this.tasks.matchSpares();
    log('%s: %s', this.#options.settings.cluster, error.message);
    if (!keepsCalls) session.giveUp(error, lives);
    this.#host.changed();
    if (!hasLeft) this.#host.tell('workerLost', task.info, error);
    if (isNeeded) {
      const { leadership, fail } = this.#options;
      const why = new UnavailableError(`The parameter server ${name} is lost`, { cause: error });
      // A run that is taken over has lost its nodes, and fails by the look at the key itself.
      void leadership
        .assertHeld()
        .catch(() => undefined)
        .then(() => fail(why));
    }
    dispatcher.wake();
  }

  /**
   * Gives up nodes that were told to cancel a function and do not report its end. A node ends such a
   * function itself, by force after the grace period, but cannot report this without a connection:
   * so cancelled functions and deadlines do not wait for the servers.
   */
  #watchCancelled(afterMs: number): void {
    this.#cancelWatch ??= new Timer(afterMs, () => {
      this.#cancelWatch = undefined;
      const since = performance.now() - this.#host.cancelGraceMs - REPORT_MS;
      const isConnected = this.#options.leadership.connection.nats !== undefined;
      let hasMore = false;
      for (const session of this.sessions.values()) {
        const { cancelledAt } = session.calls;
        if (cancelledAt === undefined || session.isAway) continue;
        if (isConnected || cancelledAt > since) hasMore = true;
        else this.#setAway(session, lost.unreachable);
      }
      if (hasMore) this.#watchCancelled(REPORT_MS);
    });
  }

  /** Ends sessions that will not be missed: their node is away for long, and another has their task. */
  #expire(): void {
    const now = performance.now();
    for (const session of this.#givenUp) {
      const { calls, awaySince } = session;
      if (awaySince === undefined) {
        if (!calls.hasGivenUp) this.#givenUp.delete(session);
      } else if (this.tasks.named(session).session !== undefined) {
        const mostMs = calls.isForgotten ? AWAY_MS : LONGEST_AWAY_MS;
        if (now - awaySince > mostMs) this.#lose(session, lost.gone);
      }
    }
  }
}

/** The requester of a stop of this process names its machine. */
const fromHere = (stop: StopMessage): StopMessage => ({
  ...stop,
  requester: { ...stop.requester, host: cleaned(stop.requester.host ?? hostname()) },
});
