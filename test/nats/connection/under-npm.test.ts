/** A worker that npx or npm run has started: they end at a SIGTERM without passing it on. */
// @module-tag nats
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { NatsServer } from '../../support/nats-server.ts';

const cli = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));
const module = fileURLToPath(new URL('../../fixtures/cluster-tasks.mjs', import.meta.url));

it('a worker under npm ends as after a SIGTERM when the process that started it is gone', async () => {
  const server = await NatsServer.start();
  const options = ['--module', module, '--servers', server.address, '--cluster', 'c'];
  // As npm does: a shell that waits for the command.
  const shell = spawn(
    'sh',
    ['-c', '"$@"; true', 'sh', process.execPath, cli, 'worker', ...options],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, npm_command: 'exec' },
    },
  );
  const lines = createInterface(shell.stderr);
  const closed = once(lines, 'close'); // when the worker, too, has closed its stderr
  const [line] = await once(lines, 'line');
  expect(line).toMatch(/^\d{4}-\d\d-\d\dT.*Z allstop: connected/);
  shell.kill('SIGTERM');
  await closed;
  expect(shell.signalCode).toBe('SIGTERM');
  await server.close();
});
