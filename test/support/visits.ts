/** Where functions stop over, in threads and in processes, until the test lets them go on. */

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A function that waits. */
export type Visit = {
  /** It goes on, and returns that. */
  pass(answer?: string): void;
  /** It throws an error that says so. */
  fail(message: string): void;
  /** The next that it tells. */
  told(): Promise<string>;
  /** Its worker is gone, or it has gone on. */
  readonly left: Promise<void>;
};

let made = 0;

export class Visits {
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #arrived = new Map<string, Visit[]>();
  readonly #expected = new Map<string, ((visit: Visit) => void)[]>();
  /** What has arrived, in order. */
  readonly names: string[] = [];
  /** What functions are passed. */
  readonly path: string;

  constructor() {
    const name = `allstop-test-${process.pid}-${++made}`;
    this.path = process.platform === 'win32' ? `\\\\.\\pipe\\${name}` : join(tmpdir(), name);
  }

  /** For one test, until it is closed. */
  async open(): Promise<void> {
    this.#server = createServer((socket) => this.#greet(socket));
    this.#server.listen(this.path);
    await once(this.#server, 'listening');
  }

  /** Resolves when a function of that name has come; each is given once. */
  next(name: string): Promise<Visit> {
    const visit = this.#arrived.get(name)?.shift();
    if (visit !== undefined) return Promise.resolve(visit);
    return new Promise((resolve) => {
      this.#expected.set(name, [...(this.#expected.get(name) ?? []), resolve]);
    });
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    const closed = this.#server === undefined ? undefined : once(this.#server, 'close');
    this.#server?.close();
    await closed;
    this.#arrived.clear();
    this.#expected.clear();
    this.names.length = 0;
  }

  #greet(socket: Socket): void {
    this.#sockets.add(socket);
    const lines: string[] = [];
    const waiting: ((line: string) => void)[] = [];
    let isGreeted = false;
    const left = new Promise<void>((resolve) => {
      socket.once('close', () => {
        this.#sockets.delete(socket);
        resolve();
      });
    });
    socket.on('error', () => {}); // its worker died
    const visit: Visit = {
      pass: (answer = '') => void socket.write(`pass ${answer}\n`),
      fail: (message) => void socket.write(`fail ${message}\n`),
      told: () => {
        const line = lines.shift();
        if (line !== undefined) return Promise.resolve(line);
        return new Promise((resolve) => {
          waiting.push(resolve);
        });
      },
      left,
    };
    const reader = createInterface(socket);
    reader.on('error', () => {}); // it passes on what the socket says
    reader.on('line', (line) => {
      if (!isGreeted) {
        isGreeted = true;
        this.#arrive(line, visit);
        return;
      }
      const first = waiting.shift();
      if (first === undefined) lines.push(line);
      else first(line);
    });
  }

  #arrive(name: string, visit: Visit): void {
    this.names.push(name);
    const resolve = this.#expected.get(name)?.shift();
    if (resolve !== undefined) resolve(visit);
    else this.#arrived.set(name, [...(this.#arrived.get(name) ?? []), visit]);
  }
}
