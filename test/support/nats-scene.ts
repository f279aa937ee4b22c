/** Servers, workers and coordinators of one test, and their end. */

import assert from 'node:assert/strict';
import {
  ClusterCoordinator,
  type ClusterCoordinatorOptions,
  type RemoteValue,
} from 'allstop/cluster';
import { NatsStrategy, type NatsStrategyOptions } from 'allstop/nats';
import { freePort, NatsServer } from './nats-server.ts';
import { NatsWorker, type WorkerOptions } from './nats-worker.ts';
import { TcpProxy } from './tcp-proxy.ts';

const module = new URL('../fixtures/cluster-nats-faults.mjs', import.meta.url);

export class NatsScene {
  readonly servers: NatsServer[] = [];
  readonly workers: NatsWorker[] = [];
  readonly clusters: ClusterCoordinator[] = [];
  readonly #proxies: TcpProxy[] = [];

  static async open(config = ''): Promise<NatsScene> {
    const scene = new NatsScene();
    scene.servers.push(await NatsServer.start(config));
    return scene;
  }

  /** Three servers that are one. */
  static async openThree(): Promise<NatsScene> {
    const scene = new NatsScene();
    const routes = [await freePort(), await freePort(), await freePort()];
    // One after the other: of three that start at the same moment now and then one finds no
    // way to the others for more than a minute (nats-server 2.10.27, without us: 4 of 98).
    for (const [at, route] of routes.entries()) {
      const others = routes.map((port) => `nats://127.0.0.1:${port}`);
      const server = await NatsServer.start(
        `server_name: s${at}\ncluster { name: c, listen: "127.0.0.1:${route}", routes: [${others.join(',')}] }`,
      );
      scene.servers.push(server);
    }
    return scene;
  }

  get server(): NatsServer {
    return this.servers[0] as NatsServer;
  }

  get addresses(): string[] {
    return this.servers.map(({ address }) => address);
  }

  async proxy(): Promise<TcpProxy> {
    const proxy = await TcpProxy.to(this.server.port);
    this.#proxies.push(proxy);
    return proxy;
  }

  /** It may not be taken yet. */
  spawn(options: Partial<WorkerOptions> = {}): NatsWorker {
    const servers = this.addresses.join(',');
    const worker = new NatsWorker({ module, servers, cluster: 'test', ...options });
    this.workers.push(worker);
    return worker;
  }

  coordinator(
    strategy: Partial<NatsStrategyOptions> = {},
    options: ClusterCoordinatorOptions = {},
  ): ClusterCoordinator {
    const cluster = new ClusterCoordinator(
      new NatsStrategy({ module, servers: this.addresses, cluster: 'test', ...strategy }),
      options,
    );
    this.clusters.push(cluster);
    return cluster;
  }

  /** With so many workers, all of them ready. */
  async start(
    minWorkers: number,
    options: ClusterCoordinatorOptions = {},
    strategy: Partial<NatsStrategyOptions> = {},
  ): Promise<ClusterCoordinator> {
    const cluster = this.coordinator({ minWorkers, ...strategy }, options);
    for (let task = 0; task < minWorkers; task += 1) this.spawn({ task });
    await cluster.ready();
    return cluster;
  }

  async close(): Promise<void> {
    await Promise.all(this.clusters.map((cluster) => cluster.close()));
    const alive = this.workers.filter(({ child }) => child.exitCode === null);
    await Promise.all(alive.map((worker) => worker.kill()));
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
    await Promise.all(this.servers.map((server) => server.close()));
  }
}

/** Closures on their way, and how far they are. */
export class Squares {
  readonly all: RemoteValue<number>[] = [];
  settled = 0;
  readonly #awaited = new Map<number, () => void>();

  /** Resolves when so many have come to something. */
  reached(count: number): Promise<void> {
    if (this.settled >= count) return Promise.resolve();
    return new Promise((resolve) => this.#awaited.set(count, resolve));
  }

  async schedule(cluster: ClusterCoordinator, count: number): Promise<void> {
    for (let n = 0; n < count; n += 1) {
      const value = await cluster.schedule('square', [n]);
      const settle = (): void => {
        this.settled += 1;
        this.#awaited.get(this.settled)?.();
      };
      value.fetch().then(settle, settle);
      this.all.push(value);
    }
  }

  /** What all of them have to be. */
  get results(): number[] {
    return this.all.map((_, n) => n * n);
  }
}

/** Of all the workers that there are and were: each result is counted once. */
export function completed(cluster: ClusterCoordinator): number {
  return cluster.workers.reduce((sum, worker) => sum + worker.completed, 0);
}

/** It does what it is for. */
export async function works(cluster: ClusterCoordinator): Promise<void> {
  const squares = new Squares();
  await squares.schedule(cluster, 100);
  await cluster.join();
  assert.deepEqual(await cluster.fetch(squares.all), squares.results);
}
