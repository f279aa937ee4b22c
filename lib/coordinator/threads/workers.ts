/** Starts Workers that find their coordinator with `Coordinator.current()`. */

import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { WorkerOptions as NodeWorkerOptions, Worker } from 'node:worker_threads';
import { type Checks, checkBoolean, checkOptions, nameOf, ofNode } from '../../base/arguments.ts';
import { workerThreads } from '../../base/builtins.ts';
import { moduleFile, moduleFileOrPath } from '../../base/module-file.ts';
import { codeOf, messageOf } from '../../base/thrown-value.ts';
import { UnavailableError } from '../../errors/errors.ts';
import { besideThis, look, ownFolders, packageFolder } from '../../native/binary/package-files.ts';
import type { NativeAttachment } from '../../native/binding.ts';
import { binding } from '../../native/native.ts';
import { adoptInherited, handOver } from '../../telemetry/spans.ts';
import { Attachment } from '../attachment.ts';
import { leaveErrorsToParent } from '../unseen-errors.ts';
import { followWorker, register, type Watch } from './watch.ts';

// Finds `allstop-worker.js`, which looper threads, queue runners and cluster workers execute.

const WORKER = 'allstop-worker';
let workerFound: URL | undefined;

/**
 * The file that the package's own workers (threads and processes) execute. It lies beside this
 * code, or beside the bundle or the program that this code was bundled into.
 *
 * @throws UnavailableError: the file is missing
 */
export function workerEntry(): URL {
  if (workerFound !== undefined) return workerFound;
  const beside = besideThis()?.worker;
  if (beside !== undefined && look(fileURLToPath(beside))) {
    workerFound = beside;
    return beside;
  }
  const folders = ownFolders().flatMap((folder) => [folder, join(folder, '..')]);
  const installed = packageFolder();
  if (installed !== undefined) folders.push(join(installed, 'dist'));
  for (const folder of folders) {
    for (const extension of ['js', 'mjs', 'cjs']) {
      const path = join(folder, `${WORKER}.${extension}`);
      if (!look(path)) continue;
      workerFound = pathToFileURL(path);
      return workerFound;
    }
  }
  throw new UnavailableError(
    `allstop: ${WORKER}.js is missing, in ${folders.join(', ')}. What to do: ` +
      `add 'allstop/worker' to the bundler's entry points, by the name '${WORKER}'`,
  );
}

// Which of this process's execArgv its workers and child processes inherit.

/** Options that are about this process only: the program's text, and the debugger's port. */
const WITH_VALUE = /^(?:-e|-p|-pe|--eval|--print|--input-type|--inspect-port|--debug-port)$/;
const BY_ITSELF = /^--(?:eval|print|input-type|inspect|debug-port)/;
/** Node refuses this option to a process or worker thread that runs a file. */
const REFUSED = /^--input-type\b/;

/** Options for a child process that runs a file: with `--eval` it would run the text instead. */
export function execArgvOfFile(): string[] {
  const left: string[] = [];
  let isValue = false;
  for (const arg of process.execArgv) {
    if (!isValue && !WITH_VALUE.test(arg) && !BY_ITSELF.test(arg)) left.push(arg);
    isValue = !isValue && WITH_VALUE.test(arg);
  }
  return left;
}

/** The options for a worker thread that runs a file. @returns undefined: Node's default will do */
function execArgvOfWorker(): string[] | undefined {
  return process.execArgv.some((arg) => REFUSED.test(arg)) ? execArgvOfFile() : undefined;
}

/**
 * `execArgv` without the options that Node refuses to worker threads because they are about the
 * whole process. `error` is Node's refusal, which lists them; any other error is thrown again.
 */
function withoutRefused(execArgv: readonly string[], error: unknown): string[] {
  if (codeOf(error) !== 'ERR_WORKER_INVALID_EXEC_ARGV') throw error;
  const message = messageOf(error);
  const refused = message.slice(message.indexOf(': ') + 2).split(', ');
  return execArgv.filter((arg) => !refused.includes(arg));
}

/** The options of `spawn`: those of Node's Worker, and one of ours. */
export type CoordinatorSpawnOptions = NodeWorkerOptions & {
  /** As the option `daemon` of `start`. Default: false. */
  daemon?: boolean | undefined;
};

/** Of Node's Worker, and `type` and `credentials` of the browsers' one, which Node ignores. */
const WORKER_OPTIONS: Checks = {
  daemon: checkBoolean,
  ...ofNode('argv env eval execArgv stdin stdout stderr workerData trackUnmanagedFds transferList'),
  ...ofNode('resourceLimits name type credentials'),
};

/** Starts a Worker and registers it. */
export function spawn(
  attachment: Attachment,
  url: URL | string,
  options: CoordinatorSpawnOptions | undefined,
): Worker {
  const { daemon, ...given } = checkOptions('options', options, WORKER_OPTIONS);
  const file = given.eval === true ? url : moduleFileOrPath(url);
  return handOver(() =>
    startWorker(attachment, file, given, (worker, name) => {
      register(attachment, worker, name, daemon);
    }),
  );
}

/** The `workerData` of a Worker that runs a module of the program. */
export type WorkOfModule = {
  module: string;
  /** The generation of the coordinator at the start: a later one means that a stop has happened. */
  since: number;
};

/**
 * Starts a Worker, which does `work` with `module`, as the thread that `watch` has registered, unless a
 * stop was requested. Resolves when the Worker has exited.
 */
export async function runInWorker<W extends WorkOfModule>(
  watch: Watch,
  module: URL,
  work: Omit<W, keyof WorkOfModule>,
): Promise<void> {
  if (watch.stopWasRequested) return;
  const { name, generation: since } = watch;
  const workerData = { ...work, module: moduleFile(module).href, since };
  await new Promise<void>((resolve) => {
    startWorker(watch.attachment, workerEntry(), { name, workerData }, (worker) => {
      watch.start(worker.threadId);
      followWorker(watch, worker, resolve);
    });
  });
}

/**
 * Starts a Worker that finds the coordinator with `Coordinator.current()`, and does not register
 * it. Calls `follow` before the Worker can look for the coordinator.
 */
export function startWorker(
  attachment: Attachment,
  url: URL | string,
  options: NodeWorkerOptions | undefined,
  follow: (worker: Worker, name: string) => void,
): Worker {
  const native = binding();
  const ticket = native.beginSpawn();
  try {
    const worker = newWorker(url, options);
    const name = nameOf(options ?? {}) ?? `worker-${worker.threadId}`;
    native.setSpawned(attachment.native, worker.threadId, name);
    follow(worker, name);
    return worker;
  } finally {
    native.endSpawn(ticket);
  }
}

function newWorker(url: URL | string, options: NodeWorkerOptions | undefined): Worker {
  const execArgv = options?.execArgv === undefined ? execArgvOfWorker() : undefined;
  const { Worker } = workerThreads();
  if (execArgv === undefined) return new Worker(url, options);
  try {
    return new Worker(url, { ...options, execArgv });
  } catch (error) {
    return new Worker(url, {
      ...options,
      execArgv: withoutRefused(execArgv, error),
    });
  }
}

/** The attachment behind `Coordinator.current()`, which documents it. */
export function currentAttachment(): Attachment | undefined {
  let native: NativeAttachment | null | undefined;
  // Between two calls of 50 ms this worker can be terminated. That must be possible: the thread
  // whose spawn is waited for here may be waiting for the end of this worker.
  do native = binding().currentCoordinator();
  while (native === undefined);
  adoptInherited();
  return native === null ? undefined : Attachment.of(native);
}

/** From now on `Coordinator.current()` finds the coordinator here; this thread's name is `name`. */
export function setCurrent(attachment: Attachment, name: string): void {
  binding().setSpawned(attachment.native, workerThreads().threadId, name);
}

/** From now on this process ends `graceMs` after its parent, even if all threads are busy. */
export function endWithParent(graceMs: number): void {
  leaveErrorsToParent();
  binding().exitWithParent(process.ppid, graceMs);
}
