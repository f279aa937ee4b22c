// @module-tag nats
/**
 * A module that makes a cluster of itself when a worker imports it would make workers without end:
 * it is refused in the first worker. Programs in one file that do so run in a child process.
 */

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ClusterCoordinator, FailedPreconditionError } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { expect, it, onTestFinished } from 'vitest';
import { errorOf } from '../../support/clusters.ts';
import { NatsServer } from '../../support/nats-server.ts';
import { NatsWorker } from '../../support/nats-worker.ts';

const program = new URL('../../fixtures/one-file.mjs', import.meta.url);
const file = fileURLToPath(program);
const REFUSED = `The module ${file} makes a cluster while a worker imports it. Put the functions into a file of their own, or make the cluster only outside workers: if (!Coordinator.current()), with import { Coordinator } from "allstop"`;

type End = { code: unknown; stdout: string; stderr: string };

/** `NODE_OPTIONS` of the test runner are not the program's. */
const environment = (settings: object): NodeJS.ProcessEnv => {
  const { NODE_OPTIONS: _, ...rest } = process.env;
  return { ...rest, ONE_FILE: JSON.stringify(settings) };
};

function run(settings: { where: string; when: string; ready?: boolean }): Promise<End> {
  const options = { env: environment(settings), timeout: 120_000, killSignal: 'SIGKILL' } as const;
  return new Promise((resolve) => {
    execFile(process.execPath, [file], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal), stdout, stderr });
    });
  });
}

/** What does not depend on how a worker starts: in processes, among the long tests. */
function inEach(title: string, tell: (where: string) => Promise<void>): void {
  it(`${title}: thread`, () => tell('thread'));
  it(`${title}: process`, { tags: 'long' }, () => tell('process'));
}

it.each(['thread', 'process'])('its cluster is refused in the first worker: %s', async (where) => {
  const { code, stdout, stderr } = await run({ where, when: 'import' });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr.split('\n').filter((line) => line.includes('makes a cluster'))).toEqual([
    `FailedPreconditionError: ${REFUSED}`,
  ]);
});

inEach('its cluster is refused after the import', async (where) => {
  const { code, stdout, stderr } = await run({ where, when: 'later' });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain(`FailedPreconditionError: ${REFUSED}`);
});

inEach('its cluster may be made outside workers', async (where) => {
  expect(await run({ where, when: 'outside' })).toEqual({ code: 0, stdout: '3\n', stderr: '' });
});

inEach('a function may make a cluster of its module', async (where) => {
  expect(await run({ where, when: 'task' })).toEqual({ code: 0, stdout: '3\n', stderr: '' });
});

inEach('its top level may pass the function itself', async (where) => {
  expect(await run({ where, when: 'function' })).toEqual({ code: 0, stdout: '3\n', stderr: '' });
});

it('its top level may pass the function itself when the workers are ready', async () => {
  const settings = { where: 'thread', when: 'function', ready: true };
  expect(await run(settings)).toEqual({ code: 0, stdout: '3\n', stderr: '' });
});

it('its top level passes a function that it does not export: the error says so', async () => {
  const { code, stdout, stderr } = await run({ where: 'thread', when: 'local' });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain(`TypeError: The function 'local' is not an export of ${program.href}`);
});

it.each([
  ['is refused in the threads of a node, and takes nothing over', 'import'],
  ['may be made outside the threads of a node', 'outside'],
])('its cluster %s', async (_, when) => {
  const server = await NatsServer.start();
  onTestFinished(() => server.close());
  const settings = { servers: server.address, cluster: 'one-file' };
  const cluster = new ClusterCoordinator(new NatsStrategy({ module: program, ...settings }));
  onTestFinished(() => cluster.close());
  const env = environment({ where: 'nats', when, ...settings });
  const worker = new NatsWorker({ module: program, ...settings, env });
  onTestFinished(() => void worker.kill());
  const sum = await cluster.run('add', [1, 2]).catch((error: unknown) => error);
  if (when === 'outside') expect(sum).toBe(3);
  else {
    expect(sum).toBeInstanceOf(FailedPreconditionError);
    expect((sum as Error).message).toBe(REFUSED);
    const ready = await errorOf(cluster.ready());
    expect(ready.message).toContain(REFUSED);
  }
});
