/** An `allstop worker` process, started as users start it. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ownCli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export type WorkerOptions = {
  module: URL;
  servers: string;
  cluster: string;
  slots?: number;
  resources?: string;
  task?: number;
  job?: string;
  /** The path of a ClusterSpec file. */
  spec?: string;
  definition?: string;
  setup?: string;
  recycle?: string;
  health?: number;
  /** The CLI of another copy of the package. */
  cli?: string;
  env?: NodeJS.ProcessEnv;
};

export class NatsWorker {
  readonly child: ChildProcess;
  readonly events: Record<string, unknown>[] = [];
  /** Lines of stderr other than events, which are JSON. */
  readonly output: string[] = [];
  readonly #waiting: { event: string; resolve: (event: Record<string, unknown>) => void }[] = [];
  readonly #exited: Promise<unknown[]>;

  constructor(options: WorkerOptions) {
    const { module, servers, cluster, slots = 1, task, job, spec, env, cli = ownCli } = options;
    const args = ['worker', '--json', '--module', fileURLToPath(module)];
    args.push('--servers', servers, '--cluster', cluster, '--slots', String(slots));
    if (task !== undefined) args.push('--task', String(task));
    if (job !== undefined) args.push('--job', job);
    if (spec !== undefined) args.push('--spec', spec);
    if (options.resources !== undefined) args.push('--resources', options.resources);
    if (options.definition !== undefined) args.push('--definition', options.definition);
    if (options.setup !== undefined) args.push('--setup', options.setup);
    if (options.health !== undefined) args.push('--health', String(options.health));
    if (options.recycle !== undefined) args.push('--recycle', options.recycle);
    this.child = spawn(process.execPath, [cli, ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...env },
    });
    this.#exited = once(this.child, 'exit');
    createInterface(this.child.stderr as NodeJS.ReadableStream).on('line', (line) => {
      if (!line.startsWith('{')) {
        this.output.push(line);
        if (process.env['NATS_WORKER_OUTPUT'] !== undefined) process.stderr.write(`${line}\n`);
        return;
      }
      const event = JSON.parse(line) as Record<string, unknown>;
      this.events.push(event);
      for (const [at, waiting] of [...this.#waiting.entries()].toReversed()) {
        if (waiting.event !== event['event']) continue;
        this.#waiting.splice(at, 1);
        waiting.resolve(event);
      }
    });
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** Resolves with the next event of that name. */
  next(event: string): Promise<Record<string, unknown>> {
    return new Promise((resolve) => this.#waiting.push({ event, resolve }));
  }

  /** Sends the signal. Resolves with [exit code, signal]. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<unknown[]> {
    this.child.kill(signal);
    return await this.#exited;
  }
}
