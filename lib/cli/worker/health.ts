/**
 * What `allstop worker --health PORT` serves over HTTP: `/livez`, `/readyz` and `/metrics` (the text
 * format of Prometheus). A worker is ready when it could take functions, also while it waits for a
 * coordinator; not while it leaves, imports the module, or has no connection.
 */

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { fieldOf, messageOf } from '../../base/thrown-value.ts';
import type { CallOutcome, NodeEvent } from '../../nats/node/node.ts';
import { CommandError } from '../base/command.ts';

/** The most names of functions that are counted: a coordinator may send any. */
const MOST_NAMES = 1_000;

export class Health {
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
    if (path === '/livez') return { status: 200, text: 'ok\n' };
    if (path === '/metrics') return { status: 200, text: this.#metrics() };
    if (path !== '/readyz') return { status: 404, text: '/livez, /readyz or /metrics\n' };
    const why = this.#whyNotReady();
    return why === undefined ? { status: 200, text: 'ok\n' } : { status: 503, text: `${why}\n` };
  }

  #whyNotReady(): string | undefined {
    if (this.#isLeaving) return 'leaving';
    if (!this.#isConnected) return 'not connected to a server';
    return this.#isImporting ? 'importing the module' : undefined;
  }

  #metrics(): string {
    const calls = [...this.#calls].flatMap(([name, outcomes]) =>
      [...outcomes].map(
        ([outcome, count]) =>
          `allstop_worker_calls_total{function="${escaped(name)}",outcome="${outcome}"} ${count}`,
      ),
    );
    return [
      '# HELP allstop_worker_calls_total Functions that have ended on this worker.',
      '# TYPE allstop_worker_calls_total counter',
      ...calls,
      ...gauge(
        'running',
        'Functions that this worker has, and that have not ended.',
        this.#running(),
      ),
      ...gauge('connected', 'Whether it is connected to a server.', Number(this.#isConnected)),
      ...gauge(
        'leaving',
        'Whether it ends when its functions have ended.',
        Number(this.#isLeaving),
      ),
      '',
    ].join('\n');
  }
}

const gauge = (name: string, help: string, value: number): string[] => [
  `# HELP allstop_worker_${name} ${help}`,
  `# TYPE allstop_worker_${name} gauge`,
  `allstop_worker_${name} ${value}`,
];

/** A value of a label. */
const escaped = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
