/** How often a port is tried that is not a NATS server's. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { ClusterCoordinator } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { NatsWorker } from '../../support/nats-worker.ts';

const tasks = new URL('../../fixtures/cluster-tasks.mjs', import.meta.url);

let server: Server;
/** When each connection was accepted, in milliseconds of `performance.now()`. */
const accepted: number[] = [];

beforeEach(async () => {
  accepted.length = 0;
  server = createServer((socket) => {
    accepted.push(performance.now());
    socket.on('error', () => {}).end();
    server.emit('accepted');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterEach(() => void server.close());

it('less and less often', async () => {
  const servers = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const cluster = new ClusterCoordinator(
    new NatsStrategy({ module: tasks, servers, cluster: 'attempts', minWorkers: 0 }),
  );
  // Each attempt connects twice: when it has failed, a second connection looks for the cause.
  while (accepted.length < 9) await once(server, 'accepted');
  await cluster.close();
  const [afterFourth, fifth] = accepted.slice(-2) as [number, number];
  expect(fifth - afterFourth).toBeGreaterThan(750); // 100, 200, 400, 800
});

it('but a `connect` that does not answer delays no close()', async () => {
  let asked = (): void => {};
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const connect = async (): Promise<object> => {
    asked();
    return await new Promise(() => {});
  };
  const servers = '127.0.0.1:1';
  const cluster = new ClusterCoordinator(
    new NatsStrategy({ module: tasks, servers, cluster: 'attempts', connect }),
  );
  await isAsked;
  await cluster.close();
});

it('to several servers, in any order, are told once', async () => {
  const others = [createServer(), createServer()];
  onTestFinished(() => others.forEach((other) => void other.close()));
  for (const other of others) {
    other.on('connection', (socket) => void server.emit('connection', socket));
    await once(other.listen(0, '127.0.0.1'), 'listening');
  }
  const servers = [server, ...others].map(
    (each) => `127.0.0.1:${(each.address() as AddressInfo).port}`,
  );
  const worker = new NatsWorker({ module: tasks, servers: servers.join(), cluster: 'attempts' });
  while (accepted.length < 20) await once(server, 'accepted'); // four for each attempt
  await worker.kill();
  expect(worker.events).toMatchObject([{ event: 'disconnected' }]);
});
