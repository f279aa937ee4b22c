/** A program that a test starts as a user would, and awaits line by line. */

import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFailed, onTestFinished } from 'vitest';

export type ProgramEnd = {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
};

const root = new URL('../../', import.meta.url);

export class Program {
  readonly child: ChildProcess;
  /** Settles when the process has ended, whether or not its children hold its pipes open. */
  readonly ended: Promise<ProgramEnd>;
  readonly #output = { stdout: '', stderr: '' };
  readonly #listeners = new Set<() => void>();
  #over = false;

  /** `path`: from the root of the repository, or absolute. */
  constructor(path: string, args: string[] = [], env: Record<string, string> = {}) {
    const { NODE_OPTIONS: _, ...rest } = process.env;
    this.child = spawn(process.execPath, [fileURLToPath(new URL(path, root)), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...rest, ...env },
    });
    onTestFinished(() => void this.child.kill('SIGKILL')); // a test that has failed leaves it behind
    onTestFailed(() => {
      process.stderr.write(`What ${path} wrote to stderr:\n${this.#output.stderr}\n`);
    });
    for (const name of ['stdout', 'stderr'] as const) {
      this.child[name]?.setEncoding('utf8').on('data', (text: string) => {
        this.#output[name] += text;
        this.#tell();
      });
    }
    this.ended = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('exit', (code, signal) => {
        // What the process wrote before its end is in the pipes, and is read in this turn or the next.
        setImmediate(() => {
          setImmediate(() => {
            this.#over = true;
            resolve({ code, signal, ...this.#output });
            this.#tell();
          });
        });
      });
    });
  }

  /** The first match in what the program writes to `stream`. Rejects if it ends without one. */
  async writes(pattern: RegExp, stream: 'stdout' | 'stderr' = 'stdout'): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = pattern.exec(this.#output[stream]);
        if (found === null && !this.#over) return;
        this.#listeners.delete(look);
        if (found !== null) resolve(found);
        else {
          void this.ended.then((end) =>
            reject(new Error(`The program ended without ${pattern}: ${JSON.stringify(end)}`)),
          );
        }
      };
      this.#listeners.add(look);
      look();
    });
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
