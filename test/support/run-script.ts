/** Starts a script of test/lifecycle/scripts as a child process and reports how it ended. */

import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFailed } from 'vitest';

/** One line that a script wrote with `say`. */
export type Said = { event: string } & Record<string, unknown>;

export type Ended = {
  code: number | null;
  signal: NodeJS.Signals | null;
  said: Said[];
  stderr: string;
  /** From the start of the process to its end, in milliseconds. */
  durationMs: number;
};

export type RunOptions = {
  execPath?: string;
  execArgv?: string[];
  env?: Record<string, string>;
  /** The test runs beside others: Vitest, which knows of one, cannot say whether it has failed. */
  concurrent?: boolean;
};

/** A running script: the test can await its messages, send it signals and await its end. */
export class Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  readonly #said: Said[] = [];
  readonly #listeners = new Set<() => void>();
  #over = false;

  constructor(name: string, args: string[], options: RunOptions) {
    const { execPath = process.execPath, execArgv = [] } = options;
    const script = fileURLToPath(new URL(`../lifecycle/scripts/${name}.mjs`, import.meta.url));
    const startedAt = performance.now();
    // The NODE_OPTIONS of the test runner are not meant for the script.
    const env = { ...process.env, ...options.env };
    delete env['NODE_OPTIONS'];
    this.child = spawn(execPath, [...execArgv, script, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env,
    });
    let rest = '';
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line.startsWith('{"event":')) this.#said.push(JSON.parse(line) as Said);
      }
      for (const listener of this.#listeners) listener();
    });
    let stderr = '';
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const failed = options.concurrent ? () => {} : onTestFailed;
    failed(() => {
      process.stderr.write(`What ${[name, ...args].join(' ')} wrote to stderr:\n${stderr}\n`);
    });
    this.ended = new Promise((resolve, reject) => {
      this.child.on('error', reject);
      this.child.on('close', (code, signal) => {
        this.#over = true;
        const durationMs = Math.round(performance.now() - startedAt);
        resolve({ code, signal, said: this.#said, stderr, durationMs });
        for (const listener of this.#listeners) listener();
      });
    });
  }

  /** Resolves to the first message with this event. Rejects if the script ends without it. */
  async says(event: string): Promise<Said> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = this.#said.find((said) => said.event === event);
        if (found === undefined && !this.#over) return;
        this.#listeners.delete(look);
        if (found !== undefined) resolve(found);
        else {
          void this.ended.then((ended) => {
            reject(
              new Error(
                `The script ended without the message '${event}': ${JSON.stringify(ended)}`,
              ),
            );
          });
        }
      };
      this.#listeners.add(look);
      look();
    });
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}

export function startScript(name: string, args: string[] = [], options: RunOptions = {}): Running {
  return new Running(name, args, options);
}

export async function runScript(
  name: string,
  args: string[] = [],
  options: RunOptions = {},
): Promise<Ended> {
  return new Running(name, args, options).ended;
}

/** The message with this event. Throws if there is none, with everything known about the run. */
export function saidOf(ended: Ended, event: string): Said {
  const found = ended.said.find((said) => said.event === event);
  if (found !== undefined) return found;
  throw new Error(`The script never sent the message '${event}': ${JSON.stringify(ended)}`);
}
