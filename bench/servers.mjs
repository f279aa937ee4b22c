/** Starts the servers and processes that a benchmark needs, and ends them with the benchmark. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'allstop-bench-'));
const children = [];
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Starts a process. Resolves when a line of its output matches `isReady`. */
export async function start(command, args, isReady) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  const ready = new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', (line) => isReady.test(line) && resolve());
    }
    child.once('exit', () =>
      reject(new Error(`${command} ${args.join(' ')} ended before it was ready`)),
    );
  });
  await ready;
  return child;
}

/** Starts a nats-server. Resolves to its address. */
export async function startNats() {
  const binary = execFileSync('bash', [join(root, 'scripts/nats-server.sh')], { encoding: 'utf8' });
  const address = `127.0.0.1:${await freePort()}`;
  const config = join(folder, 'nats.conf');
  writeFileSync(config, `listen: "${address}"\njetstream { store_dir: "${folder}/store" }\n`);
  await start(binary.trim(), ['-c', config], /Server is ready/);
  return address;
}

/** Starts a redis-server. Resolves to its address, or to undefined if there is none on the PATH. */
export async function startRedis() {
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
  try {
    await start('redis-server', [...args, '--appendonly', 'no'], /Ready to accept connections/);
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
  return `127.0.0.1:${port}`;
}

/** @param {string[]} more options of `allstop worker` */
export function worker(module, servers, cluster, more = []) {
  const options = [
    '--module',
    module,
    '--servers',
    servers,
    '--cluster',
    cluster,
    '--slots',
    '1',
    ...more,
  ];
  const args = [join(root, 'dist/cli/main.js'), 'worker', ...options];
  return start(process.execPath, args, /connected/);
}
