/**
 * Lets functions in worker threads and processes wait for the test: each connects to a local
 * socket, a "visit", and goes on when the test says so.
 */

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A function that waits for the test. */
export type Visit = {
  /** Lets the function go on and return `answer`. */
  pass(answer?: string): void;
  /** Lets the function throw an error with this message. */
  fail(message: string): void;
  /** Resolves to the next line that the function sends. */
  told(): Promise<string>;
  /** Resolves when the function has gone on, or its worker has died. */
  readonly left: Promise<void>;
};

let made = 0;

export class Visits {
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #arrived = new Map<string, Visit[]>();
  readonly #expected = new Map<string, ((visit: Visit) => void)[]>();
  /** The names of the functions that have connected, in order. */
  readonly names: string[] = [];
  /** The path of the socket, which is passed to the functions. */
  readonly path: string;

  constructor() {
    // Not the pid alone: a process of the same pid that was killed leaves its socket.
    const name = `allstop-test-${process.pid}-${++made}-${randomUUID().slice(0, 8)}`;
    this.path = process.platform === 'win32' ? `\\\\.\\pipe\\${name}` : join(tmpdir(), name);
  }

  /** Opens the socket, for one test, until `close`. */
  async open(): Promise<void> {
    this.#server = createServer((socket) => this.#greet(socket));
    this.#server.listen(this.path);
    await once(this.#server, 'listening');
  }

  /** Resolves when a function of that name has connected. Each visit is returned once. */
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
    socket.on('error', () => {}); // the worker of the function died
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
    reader.on('error', () => {}); // readline forwards the errors of the socket
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
