/** DNS lookups and TCP connections, each with a time limit. */

import { lookup } from 'node:dns/promises';
import { Socket } from 'node:net';
import { addAbortListener, reasonOfAbort, removeAbortListener } from '../../base/abort.ts';
import { Timer, within } from '../../base/timer.ts';

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
export function dial(
  host: string,
  port: number,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(reasonOfAbort(signal) as Error);
      return;
    }
    const socket = new Socket();
    const timer = new Timer(timeoutMs, () => {
      const why = `${host}:${port} has not answered within ${timeoutMs} ms`;
      socket.destroy(failure('ETIMEDOUT', why));
    });
    // The `signal` option of Socket is not used: Node 20 leaves its listener on the signal after
    // the socket has closed.
    if (signal !== undefined) {
      const onAbort = (): void => {
        socket.destroy(reasonOfAbort(signal) as Error);
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
