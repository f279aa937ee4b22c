/** Whether a host can be found and answers at all: DNS and TCP, each within its time. */

import { lookup } from 'node:dns/promises';
import { Socket } from 'node:net';
import { addAbortListener, removeAbortListener } from '../../../base/abort-listeners.ts';
import { Timer } from '../../../base/timer.ts';

/** As of the system: its code says what it is. */
function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** 'host:4222' or '[::1]:4222' in its parts. Undefined: it has no port. */
export function splitAddress(address: string): { host: string; port: number | undefined } {
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<host>[^:]*))(?::(?<port>\d+))?$/.exec(address);
  const { v6, host, port } = match?.groups ?? {};
  return { host: v6 ?? host ?? address, port: port === undefined ? undefined : Number(port) };
}

/**
 * The addresses of a name. A lookup cannot be ended: one that takes too long goes on, and is
 * not waited for.
 *
 * @throws (rejects) Error with the code ENOTFOUND or EAI_AGAIN
 */
export async function lookUp(host: string, timeoutMs: number): Promise<string[]> {
  let timer: Timer | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    const why = `the DNS has not answered for ${host} within ${timeoutMs} ms`;
    timer = new Timer(timeoutMs, () => reject(failure('EAI_AGAIN', why)));
  });
  try {
    const found = await Promise.race([lookup(host, { all: true }), tooLate]);
    return found.map(({ address }) => address);
  } finally {
    timer?.clear();
  }
}

/**
 * A connection, which is the caller's to end. An abort of `signal` ends it, too.
 *
 * @throws (rejects) Error with a code: ECONNREFUSED, ETIMEDOUT…; the reason of `signal`
 */
export function dial(
  host: string,
  port: number,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const socket = new Socket();
    const timer = new Timer(timeoutMs, () => {
      const why = `${host}:${port} has not answered within ${timeoutMs} ms`;
      socket.destroy(failure('ETIMEDOUT', why));
    });
    // Not the socket's own `signal`: Node 20 leaves its listener there when the socket is closed.
    if (signal !== undefined) {
      const onAbort = (): void => {
        socket.destroy(signal.reason as Error);
      };
      addAbortListener(signal, onAbort);
      socket.once('close', () => removeAbortListener(signal, onAbort));
    }
    socket.once('error', (error) => {
      timer.clear();
      reject(error);
    });
    socket.once('connect', () => {
      timer.clear();
      resolve(socket);
    });
    socket.connect({ host, port });
  });
}
