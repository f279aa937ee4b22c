/** Servers that are closed in order at a stop. */

import type { Server } from 'node:net';
import {
  checkDuration,
  checkFunction,
  checkOptions,
  checkString,
  holds,
  invalidType,
} from '../base/arguments.ts';
import { showAs } from '../base/inspect.ts';
import { codeOf } from '../base/thrown-value.ts';
import { Timer } from '../base/timer.ts';
import { attachmentOf, checkCoordinator } from '../coordinator/attachment.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';
import { isEndOfRun } from '../coordinator/nursery.ts';
import { reportBeside } from '../coordinator/requests.ts';
import { counted, warn } from '../coordinator/words.ts';
import { THREAD_KINDS } from '../native/binding.ts';
import {
  type AnyServer,
  type Connections,
  connectionsOf,
  giveBack,
  isInUse,
} from './connections.ts';

/** The options of `closeOnStop`. */
export type CloseOnStopOptions = {
  /**
   * How long the server goes on accepting after the stop, in milliseconds, so that a load balancer
   * sees at its health check that the server stops. Default: 0.
   */
  drainMs?: number | undefined;
  /**
   * How long requests in flight may take to end, in milliseconds from the end of the drain. What is
   * left then is cut. Default: 10,000.
   */
  closeMs?: number | undefined;
  /**
   * Called in place of `server.close()`, for example `() => app.close()`; what it returns is
   * awaited. Default: `server.close()`.
   */
  close?: (() => unknown) | undefined;
  /** The hook's name, for `threads`, `explain()` and messages. Default: 'server'. */
  name?: string | undefined;
};

/** What `closeOnStop` returns. Disposing of it leaves the server alone at the next stop. */
export type ServerClosing = Disposable & {
  /** How many requests are in flight now; 0 when this is disposed of. */
  readonly inFlight: number;
};

const OPTIONS = {
  drainMs: checkDuration,
  closeMs: checkDuration,
  close: checkFunction,
  name: checkString,
};
const CLOSE_MS = 10_000;
/** A server that ends after less time was not meant to. */
const AT_ONCE_MS = 1_000;

function checkServer(server: unknown): asserts server is Server {
  const isServer = holds(() => {
    const { close, on, listening } = server as Server;
    return (
      typeof close === 'function' && typeof on === 'function' && typeof listening === 'boolean'
    );
  });
  if (isServer) return;
  const remedy =
    'pass app.server of Fastify, app.getHttpServer() of NestJS, what app.listen() of Express returns';
  throw invalidType('server', 'an instance of Server', server, remedy);
}

class Closing implements ServerClosing {
  readonly #server: AnyServer;
  readonly #coord: Coordinator;
  readonly #closeMs: number;
  readonly #closeByProgram: (() => unknown) | undefined;
  readonly #name: string;
  readonly #hook: Disposable;
  readonly #connections: Connections;
  /** When it was given the server. */
  readonly #since = performance.now();
  #phase: 'open' | 'draining' | 'closing' = 'open';
  #isDisposed = false;

  static {
    showAs(Closing.prototype, (closing) => ({
      name: closing.#name,
      facts: closing.#isDisposed ? ['ended'] : [closing.#phase, `${closing.inFlight} in flight`],
    }));
  }

  constructor(server: AnyServer, coord: Coordinator, options: CloseOnStopOptions) {
    const { drainMs = 0, closeMs = CLOSE_MS, close, name = 'server' } = options;
    this.#server = server;
    this.#coord = coord;
    this.#closeMs = closeMs;
    this.#closeByProgram = close;
    this.#name = name;
    this.#hook = coord.onStop(() => this.#run(drainMs), { name });
    this.#connections = connectionsOf(server, this, coord);
    server.on('listening', this.#listens);
  }

  get inFlight(): number {
    return this.#isDisposed ? 0 : this.#connections.inFlight;
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#hook[Symbol.dispose]();
    this.#server.off('listening', this.#listens);
    if (this.#phase === 'open') giveBack(this.#server, this); // else when the run has ended
  }

  /**
   * A server that begins to listen after the stop is closed, too, unless it serves another
   * coordinator by then. Nobody waits for its drain.
   */
  readonly #listens = (): void => {
    if (this.#phase !== 'open' || !this.#coord.shouldStop()) return;
    const late = this.#coord.onStop(
      async () => {
        late[Symbol.dispose]();
        if (!isInUse(this.#server)) await this.#run(0);
      },
      { name: this.#name },
    );
  };

  async #run(drainMs: number): Promise<void> {
    if (this.#isDisposed) return;
    if (this.#server.listening) this.#warnOfEndedRun();
    try {
      if (drainMs > 0 && this.#server.listening) {
        this.#phase = 'draining';
        await this.#drain(drainMs);
      }
      this.#phase = 'closing';
      await this.#close();
    } finally {
      this.#phase = 'open';
      if (this.#isDisposed) giveBack(this.#server, this);
    }
  }

  /**
   * Warns of a body of `Coordinator.run` that has not awaited the stop: nobody has connected, no thread
   * has worked, and the server is new. Else the program was done, and the server was there beside it.
   */
  #warnOfEndedRun(): void {
    const isNew = performance.now() - this.#since < AT_ONCE_MS;
    if (!isNew || !this.#connections.isUnused || !isEndOfRun(this.#coord.stopRecord)) return;
    const { native } = attachmentOf(this.#coord);
    if (native.endedThreads().some(({ kind }) => THREAD_KINDS[kind] !== 'hook')) return;
    warn(
      'ServerClosedWarning',
      'ALLSTOP_SERVER_CLOSED',
      `The server '${this.#name}' listens, and is closed: the function of Coordinator.run() has returned, and run() waits for threads, not for servers`,
      'Let the function end with `await coord.waitForStop()`',
    );
  }

  /** Resolves after `ms`, or when the program has closed the server. */
  async #drain(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const end = (): void => {
        timer.clear();
        this.#server.off('close', end);
        resolve();
      };
      const timer = new Timer(ms, end);
      this.#server.once('close', end);
    });
  }

  async #close(): Promise<void> {
    const connections = this.#connections;
    const reopen = connections.close();
    let isClosed = false;
    const closed = this.#closeServer().finally(() => {
      isClosed = true;
    });
    const ended = Promise.allSettled([closed]).then(() => connections.empty());
    const isLate = await new Promise<boolean>((resolve) => {
      const timer = new Timer(this.#closeMs, () => resolve(true));
      void ended.then(() => {
        timer.clear();
        resolve(false);
      });
    });
    if (isLate) {
      this.#cut(isClosed);
      await connections.empty();
    }
    reopen();
    if (isClosed) return closed; // gives the error of `close`
    const from = { via: 'hook', threadName: this.#name } as const;
    closed.catch((error) => reportBeside(attachmentOf(this.#coord), error, from, 0));
  }

  /** Resolves when `close` has done its work and the server accepts no more. */
  async #closeServer(): Promise<void> {
    try {
      await this.#closeByProgram?.();
    } catch (error) {
      if (codeOf(error) !== 'ERR_SERVER_NOT_RUNNING') throw error; // it was closed before
    } finally {
      const server = this.#server;
      if (server.listening) {
        const closed = new Promise((resolve) => void server.close(resolve));
        void this.#connections.closeIdle(); // those that were accepted while `close` ran
        await closed;
      }
    }
  }

  #cut(isClosed: boolean): void {
    const { inFlight } = this.#connections;
    this.#connections.destroyAll();
    if (this.#server.listening) this.#server.close();
    const hangs = this.#closeByProgram !== undefined && !isClosed;
    if (inFlight === 0 && !hangs) return; // connections of no request
    const culprit = hangs ? ', and its close() has not ended' : '';
    warn(
      'RequestsCutWarning',
      'ALLSTOP_REQUESTS_CUT',
      `The server '${this.#name}' has cut ${counted(inFlight, 'request')} that had not ended after ${this.#closeMs} ms${culprit}`,
      'A longer closeMs of closeOnStop() gives requests more time. Connections that were upgraded, WebSockets for example, are cut unless the program closes them',
    );
  }
}

/**
 * Closes `server` at a stop of `coord`, in order, by a hook (`coord.onStop`). The server may be one
 * of node:http, https, http2, net or tls.
 *
 * 1. For `drainMs` the server goes on as before. A health check that looks at `coord.shouldStop()`
 *    says so to the load balancer.
 * 2. The server accepts no more, answers carry `connection: close`, idle connections are closed,
 *    and requests in flight end. HTTP/2 sends GOAWAY.
 * 3. After `closeMs` what is left is destroyed, and a warning (`ALLSTOP_REQUESTS_CUT`) says how many
 *    requests that were.
 *
 * A request is in flight from its first byte until its answer has been sent and its body has come.
 * Of HTTP/2 each stream counts; of a server that does not speak HTTP each open connection; and each
 * connection that was upgraded, until it is closed. A connection without a request is idle.
 *
 * Hooks run the last registered first: call it after `onStop` for what requests need. A server that
 * begins to listen after the stop is closed at once, unless it serves another coordinator; one that
 * the program has closed is only waited for. After `clearStop()` the server may listen again, and the next stop closes it.
 *
 * @example
 * ```js
 * import { createServer } from 'node:http';
 * import { Coordinator } from 'allstop';
 * import { closeOnStop } from 'allstop/http';
 *
 * const body = async (coord) => {
 *   const server = createServer((request, response) => response.end('hello'));
 *   closeOnStop(server, coord);
 *   server.listen(0);
 *   setTimeout(() => coord.requestStop(), 100); // stands for Ctrl-C
 *   await coord.waitForStop();
 * };
 * await Coordinator.run(body, { stopOnSignals: ['SIGINT', 'SIGTERM'] });
 * console.log('closed'); // closed
 * ```
 * @returns the hook; disposing of it takes it and its listeners off, and a closing that has begun
 *   goes on
 * @throws TypeError, RangeError a wrong argument: nothing has changed then. An error of `close` is
 *   one of the hook (see `onStop`)
 */
export function closeOnStop(
  server: Server,
  coord: Coordinator,
  options?: CloseOnStopOptions,
): ServerClosing {
  checkServer(server);
  checkCoordinator('coord', coord);
  return new Closing(server, coord, checkOptions('options', options, OPTIONS));
}
