/** A port that accepts connections and says nothing: a hung server, or the port of something else. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { describe, it } from 'vitest';

const fixture = (name: string): URL => new URL(`../../fixtures/${name}`, import.meta.url);
const tasks = fixture('cluster-tasks.mjs');
const main = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

/** Accepts connections, says nothing, and closes when the test is over. */
class SilentServer {
  readonly accepted: Socket[] = [];
  readonly #server: Server;
  readonly #children: ChildProcess[] = [];

  private constructor() {
    this.#server = createServer((socket) => {
      this.accepted.push(socket);
      socket.on('error', () => {}).resume();
      this.#server.emit('accepted');
    });
  }

  static async open(): Promise<SilentServer> {
    const silent = new SilentServer();
    silent.#server.listen(0, '127.0.0.1');
    await once(silent.#server, 'listening');
    return silent;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves when the server has accepted so many connections. */
  async whenAccepted(count: number): Promise<void> {
    while (this.accepted.length < count) await once(this.#server, 'accepted');
  }

  started(child: ChildProcess): ChildProcess {
    this.#children.push(child);
    return child;
  }

  [Symbol.dispose](): void {
    for (const child of this.#children) child.kill('SIGKILL');
    for (const socket of this.accepted) socket.destroy();
    this.#server.close();
  }
}

const whenConnecting = (server: SilentServer): Promise<void> => server.whenAccepted(1);

/** The client has given up, something has asked the server for the cause, the client tries again. */
async function whenConnectingAgain(server: SilentServer): Promise<void> {
  await server.whenAccepted(3);
  for (const socket of server.accepted.slice(0, 2)) {
    if (!socket.closed) await once(socket, 'close');
  }
}

// Most of the time they wait for limits of the client.
describe.concurrent.each([
  ['while it connects', whenConnecting],
  ['after it has given up', whenConnectingAgain],
])('a silent server does not keep, %s,', (_, when) => {
  it.for(['tcp', 'tls'])('a program that has closed its cluster: %s', async (tls, { expect }) => {
    using server = await SilentServer.open();
    const args = [tasks.href, server.address, tls];
    const child = server.started(fork(fixture('nats-closes-when-told.mjs'), args));
    await when(server);
    const end = once(child, 'exit');
    child.send('close');
    expect(await end).toEqual([0, null]);
  });

  // Windows has no SIGTERM that a process can handle.
  it.skipIf(process.platform === 'win32')('a worker that gets a SIGTERM', async ({ expect }) => {
    using server = await SilentServer.open();
    const options = ['--servers', server.address, '--cluster', 'silent'];
    const args = [main, 'worker', '--module', fileURLToPath(tasks), ...options];
    const child = server.started(spawn(process.execPath, args, { stdio: 'ignore' }));
    await when(server);
    const end = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await end).toEqual([143, null]);
  });
});
