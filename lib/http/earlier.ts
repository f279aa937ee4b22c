/**
 * What was open at a server before anybody listened to it. Node has no public list of that, so this
 * reads what Node keeps for itself; a runtime without it gives nothing.
 */

import type { ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';

type Parser = { readonly socket?: Socket | null };
type ParserList = { all?(): readonly Parser[] };

/** A field that Node does not document. */
const hidden = (object: object, name: string): unknown =>
  (object as Record<string, unknown>)[name] ?? undefined;

/** The socket that was accepted, of a socket of TLS; undefined for a socket that was accepted. */
export const acceptedSocket = (socket: Socket): Socket | undefined =>
  hidden(socket, '_parent') as Socket | undefined;

export type EarlierConnection = {
  readonly socket: Socket;
  /** Whether Node reads requests of HTTP/1 from it: it is no longer so after an upgrade. */
  readonly isHttp1: boolean;
  /** The answer that is under way, if there is one. */
  readonly response: ServerResponse | undefined;
};

/** The sockets, those of TLS for HTTPS, from which the server reads requests of HTTP/1. */
function http1Sockets(server: Server): Socket[] {
  const key = Object.getOwnPropertySymbols(server).find(
    ({ description }) => description === 'http.server.connections',
  );
  const list = key && (server as unknown as Record<symbol, ParserList | undefined>)[key];
  const parsers = list?.all?.() ?? [];
  return parsers.flatMap(({ socket }) => (socket ? [socket] : []));
}

export function earlierConnections(server: Server): EarlierConnection[] {
  const http1 = http1Sockets(server);
  // A socket of TLS is not a handle of its own.
  const known = new Set<unknown>(http1.flatMap((socket) => [socket, acceptedSocket(socket)]));
  const handles = hidden(process, '_getActiveHandles') as (() => Socket[]) | undefined;
  const others = (handles?.() ?? []).filter(
    (handle) => hidden(handle, 'server') === server && !known.has(handle),
  );
  return [
    ...http1.map((socket) => ({
      socket,
      isHttp1: true,
      response: hidden(socket, '_httpMessage') as ServerResponse | undefined,
    })),
    ...others.map((socket) => ({ socket, isHttp1: false, response: undefined })),
  ];
}
