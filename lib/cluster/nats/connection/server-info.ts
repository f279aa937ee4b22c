/**
 * What a server says to whoever connects, before it is asked: which tells a NATS server from
 * a host that is silent, and from another service. The client only says that nothing came.
 */

import type { Socket } from 'node:net';
import { Timer } from '../../../base/timer.ts';
import { failureOf } from './connection-failure.ts';
import type { NatsConnectionOptions } from './connection-options.ts';
import { dial, splitAddress } from './dns-tcp.ts';

/** Of NATS's INFO what matters here; it is the server's word, so none of it is certain. */
export type ServerInfo = {
  version?: unknown;
  tls_required?: unknown;
  tls_available?: unknown;
  tls_verify?: unknown;
  auth_required?: unknown;
};

const LONGEST_BYTES = 64 * 1024;
const DIAL_MS = 2_000;

/** A line that may be of anybody, for a message. */
const printable = (line: string): string =>
  line
    .slice(0, 60)
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
    .trim();

/** @throws (rejects) Error: there is none, or it is no NATS server's */
export async function readServerInfo(socket: Socket, timeoutMs: number): Promise<ServerInfo> {
  const line = await firstLine(socket, timeoutMs);
  const info = /^INFO\s+(\{.*\})\s*$/s.exec(line)?.[1];
  if (info === undefined) throw new Error(`unexpected response: '${printable(line)}'`);
  try {
    return JSON.parse(info) as ServerInfo;
  } catch {
    throw new Error(`unexpected response: '${printable(line)}'`);
  }
}

function firstLine(socket: Socket, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    // Who waits for the other to begin, as web servers do, shows what it is when it is spoken to.
    const nudge = new Timer(timeoutMs / 2, () => socket.write('PING\r\n\r\n'));
    const late = new Timer(timeoutMs, () => {
      const error = new Error(`it has said nothing for ${timeoutMs} ms`);
      error.name = 'TimeoutError';
      end(() => reject(error));
    });
    const end = (settle: () => void): void => {
      nudge.clear();
      late.clear();
      socket.destroy();
      settle();
    };
    socket.setEncoding('latin1');
    socket.on('data', (part: string) => {
      text += part;
      if (text.includes('\n') || text.length > LONGEST_BYTES) {
        end(() => resolve(text.split('\n', 1)[0] as string));
      }
    });
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', () => {
      end(() => reject(new Error('the connection was closed without a word')));
    });
  });
}

/** It is not said so when the connection fails: that just ends. */
export function wantsCertificate(greeting: ServerInfo, { tls }: NatsConnectionOptions): boolean {
  return greeting.tls_verify === true && tls?.cert === undefined && tls?.certFile === undefined;
}

export const noCertificate = (cause: unknown): Error =>
  new Error('tls_verify is set there', { cause });

/** The rungs at which the client's word for a failure is not enough. */
const isVague = (error: unknown): boolean => failureOf(error).rung === 'nats';

/** What has kept the client from connecting, if looking again can tell more than it has said. */
export async function clarifyFailure(
  error: unknown,
  options: NatsConnectionOptions,
  signal: AbortSignal,
): Promise<unknown> {
  if (!isVague(error) || options.tls?.handshakeFirst === true) return error;
  for (const server of options.servers) {
    const { host, port } = splitAddress(server);
    try {
      const socket = await dial(host, port as number, DIAL_MS, signal);
      const greeting = await readServerInfo(socket, DIAL_MS);
      if (wantsCertificate(greeting, options)) return noCertificate(error);
    } catch (found) {
      return found;
    }
  }
  return error;
}
