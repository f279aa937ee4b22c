/** A port that accepts connections and says nothing: a hung server, or the port of something else. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';

const fixture = (name: string): URL => new URL(`../../fixtures/${name}`, import.meta.url);
const tasks = fixture('cluster-tasks.mjs');
const main = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

let server: Server;
let address: string;
const accepted: Socket[] = [];

beforeEach(async () => {
  server = createServer((socket) => {
    accepted.push(socket);
    socket.on('error', () => {}).resume();
    server.emit('accepted');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(() => {
  for (const socket of accepted.splice(0)) socket.destroy();
  server.close();
});

/** Resolves when the server has accepted so many connections. */
async function whenAccepted(count: number): Promise<void> {
  while (accepted.length < count) await once(server, 'accepted');
}

async function whenConnecting(): Promise<void> {
  await whenAccepted(1);
}

/** The client has given up, something has asked the server for the cause, the client tries again. */
async function whenConnectingAgain(): Promise<void> {
  await whenAccepted(3);
  for (const socket of accepted.slice(0, 2)) if (!socket.closed) await once(socket, 'close');
}

function started(child: ChildProcess): ChildProcess {
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

describe.each([
  ['while it connects', whenConnecting],
  ['after it has given up', whenConnectingAgain],
])('a silent server does not keep, %s,', (_, when) => {
  it.each(['tcp', 'tls'])('a program that has closed its cluster: %s', async (tls) => {
    const child = started(fork(fixture('nats-closes-when-told.mjs'), [tasks.href, address, tls]));
    await when();
    const end = once(child, 'exit');
    child.send('close');
    expect(await end).toEqual([0, null]);
  });

  // Windows has no SIGTERM that a process can handle.
  it.skipIf(process.platform === 'win32')('a worker that gets a SIGTERM', async () => {
    const options = ['--module', fileURLToPath(tasks), '--servers', address, '--cluster', 'silent'];
    const child = started(
      spawn(process.execPath, [main, 'worker', ...options], { stdio: 'ignore' }),
    );
    await when();
    const end = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await end).toEqual([143, null]);
  });
});
