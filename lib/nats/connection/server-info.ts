/**
 * The INFO line that a NATS server sends to each new connection. It tells a NATS server from a
 * silent host and from another service. (The errors of the NATS client only say that nothing came.)
 */

import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { Socket } from 'node:net';
import type { ConnectionOptions } from '@nats-io/transport-node';
import { addAbortListener, reasonOfAbort, removeAbortListener } from '../../base/abort.ts';
import { attempt } from '../../base/thrown-value.ts';
import { Timer, within } from '../../base/timer.ts';
import { failureOf, failureOfLogin } from './connection-failure.ts';

/** The fields of INFO that we read. Unchecked: any service may have sent them. */
export type ServerInfo = {
  version?: unknown;
  tls_required?: unknown;
  tls_available?: unknown;
  tls_verify?: unknown;
  auth_required?: unknown;
};

const LONGEST_BYTES = 64 * 1024;
/** A server that takes no more connections says so behind INFO, within this time. */
const REFUSAL_MS = 100;
const DIAL_MS = 2_000;

/** The beginning of a line, for an error message, without control characters. */
const printable = (line: string): string =>
  line
    .slice(0, 60)
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
    .trim();

/**
 * Reads the INFO line, and ends the connection.
 *
 * @throws (rejects) Error: no line came in time, the line is not a NATS server's, or the server
 *   refuses the connection
 */
export async function readServerInfo(socket: Socket, timeoutMs: number): Promise<ServerInfo> {
  const [line = '', second = ''] = await firstLines(socket, timeoutMs);
  const refusal = /^-ERR '(.*)'/.exec(second)?.[1];
  if (refusal !== undefined) throw new Error(printable(refusal));
  const text = /^INFO\s+(\{.*\})\s*$/s.exec(line)?.[1] ?? '';
  const info: ServerInfo | undefined = attempt(() => JSON.parse(text));
  if (info === undefined) throw new Error(`unexpected response: '${printable(line)}'`);
  return info;
}

/** The first line; and the second, if it comes at once. */
function firstLines(socket: Socket, timeoutMs: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    let text = '';
    // A PING: a service that waits for the client to begin, such as a web server, answers it and
    // so shows that it is no NATS server.
    const nudge = new Timer(timeoutMs / 2, () => socket.write('PING\r\n\r\n'));
    const late = new Timer(timeoutMs, () => {
      const error = new Error(`the server has sent nothing for ${timeoutMs} ms`);
      error.name = 'TimeoutError';
      end(() => reject(error));
    });
    let soon: Timer | undefined;
    const end = (settle: () => void): void => {
      nudge.clear();
      late.clear();
      soon?.clear();
      socket.destroy();
      settle();
    };
    socket.setEncoding('latin1');
    socket.on('data', (part: string) => {
      text += part;
      const lines = text.split('\n');
      const isWhole = lines.length > 2 || text.length > LONGEST_BYTES;
      if (isWhole || (lines.length > 1 && !text.startsWith('INFO'))) end(() => resolve(lines));
      else if (lines.length > 1) soon ??= new Timer(REFUSAL_MS, () => end(() => resolve(lines)));
    });
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', () => {
      const lines = text.split('\n');
      if (lines.length > 1) end(() => resolve(lines));
      else end(() => reject(new Error('the connection was closed without a greeting')));
    });
  });
}

/** Whether the server wants a client certificate and none is set: the TLS error does not say so. */
export function wantsCertificate(greeting: ServerInfo, { tls }: ConnectionOptions): boolean {
  return greeting.tls_verify === true && tls?.cert === undefined && tls?.certFile === undefined;
}

export const noCertificate = (cause: unknown): Error =>
  new Error('the server sets tls_verify', { cause });

/** Whether the client's error may mean a silent host, another service, or a missing certificate. */
const isVague = (error: unknown): boolean => failureOf(error).rung === 'nats';

/**
 * Connects once more, without the client, if its error is vague.
 *
 * @returns a clearer error, or the client's own
 */
export async function clarifyFailure(
  error: unknown,
  servers: readonly string[],
  settings: ConnectionOptions,
  signal: AbortSignal,
): Promise<unknown> {
  if (!isVague(error) || settings.tls?.handshakeFirst === true) {
    return failureOfLogin(error, settings);
  }
  for (const server of servers) {
    const { host, port } = splitAddress(server);
    try {
      const socket = await dial(host, port as number, DIAL_MS, signal);
      const greeting = await readServerInfo(socket, DIAL_MS);
      if (wantsCertificate(greeting, settings)) return noCertificate(error);
    } catch (found) {
      return found;
    }
  }
  return error;
}

// DNS lookups and TCP connections, each with a time limit.

/** Makes an error with a `code`, which callers look at, as errors of the system have. */
function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** Splits 'host:4222' or '[::1]:4222'. `port` is undefined if the address has none. */
export function splitAddress(address: string): { host: string; port: number | undefined } {
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<host>[^:]*))(?::(?<port>\d+))?$/.exec(address);
  const { v6, host, port } = match?.groups ?? {};
  return { host: v6 ?? host ?? address, port: port === undefined ? undefined : Number(port) };
}

/**
 * The addresses of a host name. A lookup cannot be cancelled: it goes on after `timeoutMs`, but
 * its result is ignored.
 *
 * @throws (rejects) Error with the code ENOTFOUND or EAI_AGAIN (also after `timeoutMs`)
 */
export async function lookUp(host: string, timeoutMs: number): Promise<string[]> {
  const found = await within(timeoutMs, lookup(host, { all: true }), () => {
    throw failure('EAI_AGAIN', `the DNS has not answered for ${host} within ${timeoutMs} ms`);
  });
  return found.map(({ address }) => address);
}

/**
 * Opens a TCP connection, which the caller has to end. An abort of `signal` destroys the socket,
 * also after it has connected.
 *
 * @throws (rejects) Error with a code: ECONNREFUSED, ETIMEDOUT…; the reason of `signal`
 */
export async function dial(
  host: string,
  port: number,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Socket> {
  if (signal?.aborted) throw reasonOfAbort(signal);
  const socket = new Socket();
  socket.on('error', () => {}); // of a socket that has connected; 'close' follows
  // The `signal` option of Socket is not used: Node 20 leaves its listener on the signal after
  // the socket has closed.
  if (signal !== undefined) {
    const onAbort = (): void => {
      socket.destroy(reasonOfAbort(signal) as Error);
    };
    addAbortListener(signal, onAbort);
    socket.once('close', () => removeAbortListener(signal, onAbort));
  }
  const timer = new Timer(timeoutMs, () => {
    const why = `${host}:${port} has not answered within ${timeoutMs} ms`;
    socket.destroy(failure('ETIMEDOUT', why));
  });
  try {
    const connected = once(socket, 'connect');
    socket.connect({ host, port });
    await connected;
    return socket;
  } finally {
    timer.clear();
  }
}
