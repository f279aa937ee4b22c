/** A TCP proxy before a NATS server: carries a number of bytes a second to it, counts them, can be cut. */

import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const STEP_MS = 20;

/** @param {string} to the address of the server: HOST:PORT */
export async function openLink(to, bytesPerSecond = Number.POSITIVE_INFINITY) {
  const [host, port] = to.split(':');
  const sockets = new Set();
  const link = { address: '', bytesUp: 0, connections: 0, isCut: false };
  const step =
    bytesPerSecond === Number.POSITIVE_INFINITY
      ? Number.POSITIVE_INFINITY
      : Math.ceil((bytesPerSecond * STEP_MS) / 1_000);

  /** Writes `data` in steps, and reads nothing meanwhile: the sender's queue grows, as in a router. */
  async function carryUp(near, far, data) {
    near.pause();
    for (let at = 0; at < data.length && !far.destroyed; at += step) {
      const piece = data.subarray(at, Math.min(data.length, at + step));
      const dueMs = (piece.length / bytesPerSecond) * 1_000;
      if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs));
      link.bytesUp += piece.length;
      far.write(piece);
      if (step === Number.POSITIVE_INFINITY) break;
    }
    near.resume();
  }

  const server = createServer({ noDelay: true }, (near) => {
    if (link.isCut) {
      near.destroy();
      return;
    }
    link.connections += 1;
    const far = connect({ host, port: Number(port), noDelay: true });
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {}); // 'close' follows
      socket.on('close', () => {
        near.destroy();
        far.destroy();
        sockets.delete(socket);
      });
    }
    near.on('data', (data) => void carryUp(near, far, data));
    far.on('data', (data) => near.write(data));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  link.address = `127.0.0.1:${server.address().port}`;
  link.cut = () => {
    link.isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  link.restore = () => {
    link.isCut = false;
  };
  return link;
}
