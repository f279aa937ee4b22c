/** The work of `allstop worker`: runs a node of the cluster until a signal. */

import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { moduleFile } from '../base/module-file.ts';
import { fieldOf, messageOf } from '../base/thrown-value.ts';
import { type ClusterJobs, ClusterSpec } from '../cluster/cluster-spec.ts';
import { ONE_PRESS_MS } from '../coordinator/signal-links.ts';
import { PATIENCE_MS } from '../coordinator/unseen-errors.ts';
import { counted, printable } from '../coordinator/words.ts';
import type { Explanation } from '../errors/phases.ts';
import { binding } from '../native/native.ts';
import { loadClient } from '../nats/connection/connection.ts';
import { CREDENTIAL_VARIABLES } from '../nats/connection/connection-options.ts';
import { type CallOutcome, ClusterNode, type NodeEvent } from '../nats/node/node.ts';
import { MOST_RESOURCES } from '../nats/wire/control-messages.ts';
import { DEFINITION } from '../pool/worker/module.ts';
import type { Recycle } from '../pool/workers/channel.ts';
import {
  CommandError,
  type CommandResult,
  type Options,
  parseJson,
  UsageError,
  version,
} from './base/command.ts';
import { clusterOf, connectionOf } from './base/servers.ts';

const MAX_SLOTS = 1_024;

function integer(text: string | undefined, name: string, least: number, most: number) {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new UsageError(`--${name} must be an integer from ${least} to ${most}, not '${text}'`);
}

/** `gpu=1,memoryGb=64` */
function resourcesOf({ resources: text }: Options): Record<string, number> | undefined {
  if (text === undefined) return undefined;
  const entries = text.split(',').map((part): [string, number] => {
    const [, name, amount] = /^([A-Za-z0-9_-]{1,64})=(\d+(?:\.\d+)?)$/.exec(part) ?? [];
    const number = Number(amount);
    if (name !== undefined && number > 0 && Number.isFinite(number)) return [name, number];
    throw new UsageError(
      `--resources must be names and amounts, as in gpu=1,licence=2, not '${text}'`,
    );
  });
  const resources = Object.fromEntries(entries);
  if (Object.keys(resources).length < entries.length) {
    throw new UsageError(`--resources must name each resource once, not '${text}'`);
  }
  if (entries.length > MOST_RESOURCES) {
    throw new UsageError(`--resources must name at most ${MOST_RESOURCES} resources`);
  }
  return resources;
}

function moduleOf(options: Options): URL {
  const { module: given = '' } = options;
  const named = given.startsWith('file:') ? pathOf(given) : resolve(given);
  const path = fileURLToPath(moduleFile(pathToFileURL(named)));
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile()) return pathToFileURL(path);
  if (found === undefined || !found.isDirectory()) {
    throw new CommandError(`--module: there is no file ${path}`);
  }
  throw new CommandError(`--module: ${path} is a folder: give the file of the module in it`);
}

/** @throws UsageError */
function pathOf(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw new UsageError(`--module: ${url} is not the URL of a file: ${messageOf(error)}`);
  }
}

/** @throws UsageError: the spec has no such task; CommandError: the file is not a ClusterSpec */
function specOf({ spec: path }: Options, job: string, task: number | undefined) {
  if (path === undefined) return undefined;
  let spec: ClusterSpec;
  try {
    spec = new ClusterSpec(parseJson(readFileSync(path, 'utf8')) as ClusterJobs);
  } catch (error) {
    throw new CommandError(`--spec: ${path} is not a ClusterSpec: ${messageOf(error)}`);
  }
  // A job that the spec does not name is open to every worker.
  if (task === undefined || !spec.jobs.includes(job)) return spec;
  if (spec.taskIndices(job).includes(task)) return spec;
  throw new UsageError(`--spec: ${path} has no task ${job}:${task}`);
}

function definitionOf({ definition }: Options): string | undefined {
  if (definition === undefined || DEFINITION.test(definition)) return definition;
  throw new UsageError('--definition must be 1 to 128 printable ASCII characters without spaces');
}

/** Reads `tasks=1000,heapMb=512`, either or both. */
function recycleOf({ recycle: text }: Options): Recycle | undefined {
  if (text === undefined) return undefined;
  const parts = text.split(',').map((part) => /^(tasks|heapMb)=([1-9]\d{0,8})$/.exec(part));
  const found = new Map(parts.map((part) => [part?.[1], Number(part?.[2])]));
  if (found.has(undefined) || found.size < parts.length) {
    throw new UsageError(
      `--recycle must be tasks=N or heapMb=N or both, joined by a comma, not '${text}'`,
    );
  }
  return { tasks: found.get('tasks'), heapMb: found.get('heapMb') };
}

function describe(event: NodeEvent): string {
  switch (event.event) {
    case 'connected':
      return event.task === undefined
        ? `connected; waiting for the coordinator of the cluster '${event.cluster}'`
        : `connected again; goes on as ${event.job}:${event.task}`;
    case 'disconnected':
      return `not connected: ${why(event)}. This worker tries again until a server answers`;
    case 'forbidden':
      return `not permitted: ${why(event)}`;
    case 'too-long':
      return `no coordinator hears of this worker: ${why(event)}`;
    case 'ignored':
      return `a coordinator is ignored: ${why(event)}`;
    case 'refused':
      return `the coordinator refuses this worker: ${event.phase}: ${event.why}`;
    case 'session':
      return `joined as ${event.job}:${event.task}${event.job === 'ps' ? '' : '; importing the module'}`;
    case 'serving':
      return `serving as ${event.job}:${event.task}`;
    case 'thread-lost':
      return `a thread is lost: ${event.why}`;
    case 'thread-stuck':
      return 'a thread is blocked in native code and cannot be ended; another takes its place';
    case 'module-changed':
      return 'the module file has changed since this worker joined: it finishes the functions that it has, and then joins with the new file';
    default:
      return `the session is over: ${event.why}`;
  }
}

const why = ({ cause, remedy }: Explanation): string => `${cause}. What to do: ${remedy}`;

/** Checks the options, and reads no file. @throws UsageError */
function checkOptions(options: Options) {
  const { job = 'worker', setup, teardown } = options;
  if (job !== 'worker' && job !== 'ps') {
    throw new UsageError(`--job must be worker or ps, not '${job}'`);
  }
  return {
    job,
    connection: connectionOf(options.servers ?? ''),
    definition: definitionOf(options),
    cluster: clusterOf(options.cluster ?? ''),
    slots: integer(options.slots, 'slots', 1, MAX_SLOTS) ?? availableParallelism(),
    task: integer(options.task, 'task', 0, 1_000_000),
    setup,
    teardown,
    recycle: recycleOf(options),
    resources: resourcesOf(options),
    health: integer(options.health, 'health', 0, 65_535),
  } as const;
}

/** Resolves after SIGINT or SIGTERM, when the functions that the node has are done. */
export async function serve(options: Options): Promise<CommandResult> {
  /** Writes an event to stderr: `data` with --json, else `text`. */
  const say = (text: string, data: object): void => {
    const at = new Date().toISOString();
    const line = options.json
      ? JSON.stringify({ at, ...data })
      : `${at} allstop: ${printable(text)}`;
    process.stderr.write(`${line}\n`);
  };
  const { slots, ...checked } = checkOptions(options);
  const { job, task } = checked;
  // Threads and processes of the functions inherit the environment.
  for (const name of CREDENTIAL_VARIABLES) delete process.env[name];
  const spec = specOf(options, job, task);
  const module = moduleOf(options);
  await loadClient();
  const health = new Health(() => node.running);
  if (checked.health !== undefined) {
    const port = await health.listen(checked.health);
    say(`answers at port ${port}: /livez, /readyz, /metrics`, { event: 'health', port });
  }
  const node: ClusterNode = new ClusterNode({
    ...checked,
    module,
    spec,
    slots: job === 'worker' ? slots : 0,
    version,
    onCall: (name, outcome) => health.count(name, outcome),
    onEvent: (event) => {
      health.note(event);
      say(describe(event), event);
    },
  });
  const signals = hearSignals();
  const parentTimer = underNpm(() => signals.hear('SIGTERM'));
  const signal = await Promise.race([signals.first, node.failed]);
  clearInterval(parentTimer);
  endWithoutThreads();
  if (signal instanceof Error) {
    await Promise.race([node.close(), signals.first]);
    throw new CommandError(signal.message);
  }
  health.leaves();
  say(`${signal}: ${leavingOf(signal, node)}`, { event: 'leaving', signal, running: node.running });
  const left = node.leave().then(() => node.close());
  await Promise.race([left, signals.second.then(() => node.abandon())]);
  health.close();
  const exitCode = signal === 'SIGINT' ? 130 : 143;
  return { text: '', json: { event: 'ended', signal }, exitCode, lingers: true };
}

/**
 * Has the process end without waiting for its threads: Node waits for each, and one that is blocked
 * in native code may never end. Called last: Node calls the listeners of 'exit' in turn. Node writes
 * an uncaught error after them, when this process has ended.
 */
function endWithoutThreads(): void {
  process.once('uncaughtExceptionMonitor', (error) => {
    binding().writeToStandardError(`${inspect(error)}\n`, PATIENCE_MS);
  });
  process.once('exit', (code) => binding().endProcess(Number(process.exitCode ?? code)));
}

/** When the worker ends after the signal. */
function leavingOf(signal: NodeJS.Signals, { running, hasResults }: ClusterNode): string {
  if (running === 0 && !hasResults) return 'ending';
  const when =
    running > 0
      ? `${counted(running, 'function')} ${running === 1 ? 'is' : 'are'} done`
      : 'the coordinator has acknowledged the results';
  return `ending when ${when}; send ${signal} again to end at once`;
}

/** How often a worker under npm looks whether its parent has ended. */
const PARENT_MS = 500;

/**
 * Under npx and npm run, calls `onOrphaned` when the process that started this one has ended. npm
 * ends at a SIGTERM, as of `docker stop` or systemd, and the shell between npm and this process does
 * not pass the signal on: the worker would go on without a parent. A timer looks for that, as Node
 * has no event for the end of a parent; it runs under npm only.
 */
function underNpm(onOrphaned: () => void): NodeJS.Timeout | undefined {
  if (process.env['npm_command'] === undefined) return undefined;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onOrphaned();
  }, PARENT_MS);
  return timer;
}

/**
 * What comes within one press of a key is one signal. After the second signal, each signal has its
 * default action. `hear` is to be called with what counts as a signal, too.
 */
function hearSignals() {
  const names: NodeJS.Signals[] = ['SIGINT', 'SIGTERM'];
  const settle: ((signal: NodeJS.Signals) => void)[] = [];
  const next = (): Promise<NodeJS.Signals> => new Promise((heard) => settle.push(heard));
  const [first, second] = [next(), next()];
  let firstAt = 0;
  const hear = (signal: NodeJS.Signals): void => {
    // npx passes on the Ctrl-C that the terminal has sent to this process, too.
    if (settle.length === 1 && performance.now() - firstAt < ONE_PRESS_MS) return;
    firstAt = performance.now();
    settle.shift()?.(signal);
    if (settle.length === 0) for (const name of names) process.off(name, hear);
  };
  for (const name of names) process.on(name, hear);
  return { first, second, hear };
}

// What `allstop worker --health PORT` serves over HTTP: `/livez`, `/readyz` and `/metrics` (the text
// format of Prometheus). A worker is ready when it could take functions, also while it waits for a
// coordinator; not while it leaves, imports the module, or has no connection.

/** The most names of functions that are counted: a coordinator may send any. */
const MOST_NAMES = 1_000;

class Health {
  readonly #running: () => number;
  readonly #server: Server;
  #isConnected = false;
  #isImporting = false;
  #isLeaving = false;
  /** By function, then by outcome. */
  readonly #calls = new Map<string, Map<CallOutcome, number>>();

  /** @param running - how many functions the worker has that have not ended */
  constructor(running: () => number) {
    this.#running = running;
    this.#server = createServer(({ method = '', url = '' }, response) => {
      const { status, text } = this.#answer(method, url.replace(/\?.*/s, ''));
      const type = 'text/plain; version=0.0.4; charset=utf-8';
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
      response.end(method === 'HEAD' ? undefined : text);
    });
    this.#server.unref();
  }

  /** @returns the port. @throws (rejects) CommandError: the port is taken, for example */
  async listen(port: number): Promise<number> {
    try {
      await once(this.#server.listen(port), 'listening');
    } catch (error) {
      throw new CommandError(`--health: port ${port} cannot be opened: ${messageOf(error)}`);
    }
    return Number(fieldOf(this.#server.address(), 'port'));
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  note({ event, ...rest }: NodeEvent): void {
    if (event === 'connected') this.#isConnected = true;
    else if (event === 'disconnected') this.#isConnected = false;
    else if (event === 'session') this.#isImporting = fieldOf(rest, 'job') === 'worker';
    else if (event === 'serving' || event === 'session-over') this.#isImporting = false;
  }

  leaves(): void {
    this.#isLeaving = true;
  }

  count(name: string, outcome: CallOutcome): void {
    let outcomes = this.#calls.get(name);
    if (outcomes === undefined) {
      if (this.#calls.size >= MOST_NAMES) return;
      this.#calls.set(name, (outcomes = new Map()));
    }
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }

  #answer(method: string, path: string): { status: number; text: string } {
    if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: 'GET only\n' };
    if (path === '/metrics') return { status: 200, text: this.#metrics() };
    const isReady = path === '/readyz';
    if (!isReady && path !== '/livez')
      return { status: 404, text: '/livez, /readyz or /metrics\n' };
    if (isReady && this.#isLeaving) return { status: 503, text: 'leaving\n' };
    if (isReady && !this.#isConnected) return { status: 503, text: 'not connected to a server\n' };
    if (isReady && this.#isImporting) return { status: 503, text: 'importing the module\n' };
    return { status: 200, text: 'ok\n' };
  }

  #metrics(): string {
    const calls = [...this.#calls].flatMap(([name, outcomes]) =>
      [...outcomes].map(
        ([outcome, count]) =>
          `allstop_worker_calls_total{function="${escaped(name)}",outcome="${outcome}"} ${count}`,
      ),
    );
    const gauge = (name: string, value: number | boolean, help: string): string[] => [
      `# HELP allstop_worker_${name} ${help}`,
      `# TYPE allstop_worker_${name} gauge`,
      `allstop_worker_${name} ${Number(value)}`,
    ];
    return [
      '# HELP allstop_worker_calls_total Functions that have ended on this worker.',
      '# TYPE allstop_worker_calls_total counter',
      ...calls,
      ...gauge('running', this.#running(), RUNNING),
      ...gauge('connected', this.#isConnected, 'Whether it is connected to a server.'),
      ...gauge('leaving', this.#isLeaving, 'Whether it ends when its functions have ended.'),
      '',
    ].join('\n');
  }
}

const RUNNING = 'Functions that this worker has, and that have not ended.';

/** A value of a label. */
const escaped = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
