// A NATS server and one worker process for the soak.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts a program, and resolves when it has written a line that matches `isReady`. */
async function start(command, args, isReady) {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const last = [];
  await new Promise((resolve, reject) => {
    createInterface(child.stderr).on('line', (line) => {
      last.push(line);
      if (isReady.test(line)) resolve();
    });
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`${command} has ended: ${last.join('\n')}`)));
  });
  return async () => {
    child.kill('SIGKILL');
    await exited;
  };
}

/** @returns the address of the server, and `close`, which ends server and worker */
export async function startNats(module) {
  const binary = execFileSync('bash', [path('../../scripts/nats-server.sh')], { encoding: 'utf8' });
  const folder = mkdtempSync(join(tmpdir(), 'allstop-soak-'));
  const servers = `127.0.0.1:${await freePort()}`;
  const config = join(folder, 'nats.conf');
  writeFileSync(config, `listen: "${servers}"\njetstream { store_dir: "${folder}/store" }\n`);
  const endServer = await start(binary.trim(), ['-c', config], /Server is ready/);
  const worker = ['worker', '--module', fileURLToPath(module), '--servers', servers];
  const cli = path('../../dist/cli/main.js');
  const args = [cli, ...worker, '--cluster', 'soak', '--slots', '1'];
  const endWorker = await start(process.execPath, args, /connected/);
  return {
    servers,
    async close() {
      await endWorker();
      await endServer();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
