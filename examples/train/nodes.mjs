// A NATS server, a parameter server and workers as programs of this machine, each of which is started
// again when it is killed, as systemd or Kubernetes would.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const cli = join(
  dirname(fileURLToPath(import.meta.resolve('allstop/package.json'))),
  'dist/cli/main.js',
);
const tasks = fileURLToPath(new URL('./tasks.mjs', import.meta.url));

/** A port that is free at the moment. */
async function freePort() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  server.close();
  await once(server, 'close');
  return port;
}

/** @param {number} workers
 * @param {(error: Error) => void} onFailure one of them has ended, though nobody killed it */
export async function startNodes(workers, onFailure) {
  const folder = await mkdtemp(join(tmpdir(), 'train-nats-'));
  const port = await freePort();
  const servers = `127.0.0.1:${port}`;
  /** @type {Map<string, import('node:child_process').ChildProcess>} */
  const children = new Map();
  let isOver = false;

  /** @param {string} name @param {string} command @param {string[]} args */
  const keepAlive = (name, command, args) => {
    // In a process group of its own: Ctrl-C is for the program, which needs them for its stop.
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true });
    children.set(name, child);
    let last = '';
    const lines = createInterface(child.stderr).on('line', (line) => (last = line));
    child.on('exit', (code, signal) => {
      if (isOver) return;
      if (signal !== null) keepAlive(name, command, args);
      else onFailure(new Error(`${name} has ended with exit code ${code}: ${last}`));
    });
    return { child, lines };
  };

  const command = process.env.NATS_SERVER ?? 'nats-server';
  const args = ['-a', '127.0.0.1', '-p', `${port}`, '-js', '-sd', folder];
  const { child, lines } = keepAlive('the NATS server', command, args);
  try {
    await new Promise((resolve, reject) => {
      lines.on('line', (line) => line.includes('Server is ready') && resolve(undefined));
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`its exit code is ${code}`)));
    });
  } catch (error) {
    await rm(folder, { recursive: true });
    throw new Error(
      `The NATS server '${command}' does not start: ${error.message}. Install it from https://nats.io/download, or name it in NATS_SERVER`,
      { cause: error },
    );
  }
  const node = ['worker', '--module', tasks, '--servers', servers, '--cluster', 'train'];
  keepAlive('ps:0', process.execPath, [cli, ...node, '--job', 'ps', '--task', '0']);
  for (let task = 0; task < workers; task += 1) {
    keepAlive(`worker:${task}`, process.execPath, [cli, ...node, '--task', `${task}`]);
  }

  return {
    servers,
    killServer() {
      children.get('the NATS server')?.kill('SIGKILL');
    },
    async close() {
      isOver = true;
      const living = [...children.values()].filter(
        ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
      );
      await Promise.all(
        living.map(async (each) => {
          each.kill();
          await once(each, 'exit');
        }),
      );
      await rm(folder, { recursive: true, force: true });
    },
  };
}
