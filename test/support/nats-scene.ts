/** The servers, workers and coordinators of one test; `close` ends them all. */

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

/** So that tests of nodes that die need not wait for the default of 10 s. */
const LOST_AFTER_MS = 3_000;

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

  /** A cluster of three servers. */
  static async openThree(): Promise<NatsScene> {
    const scene = new NatsScene();
    const routes = [await freePort(), await freePort(), await freePort()];
    // Started one after the other: of three servers started at once, one sometimes cannot join
    // the others for more than a minute (nats-server 2.10.27, without allstop: 4 of 98 times).
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

  /** Starts a worker, without waiting for its session. */
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
      new NatsStrategy({
        module,
        servers: this.addresses,
        cluster: 'test',
        lostAfterMs: LOST_AFTER_MS,
        ...strategy,
      }),
      options,
    );
    this.clusters.push(cluster);
    return cluster;
  }

  /** A coordinator with `minWorkers` workers, all ready. */
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

/** Schedules functions that square numbers, and counts those that are settled. */
export class Squares {
  readonly all: RemoteValue<number>[] = [];
  settled = 0;
  readonly #awaited = new Map<number, () => void>();

  /** Resolves when `count` of them are settled. */
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

  /** The results that are expected. */
  get results(): number[] {
    return this.all.map((_, n) => n * n);
  }
}

/** Functions completed by present and former workers: a result that came twice counts once. */
export function completed(cluster: ClusterCoordinator): number {
  return cluster.workers.reduce((sum, worker) => sum + worker.completed, 0);
}

/** Fails unless the cluster runs a hundred functions. */
export async function works(cluster: ClusterCoordinator): Promise<void> {
  const squares = new Squares();
  await squares.schedule(cluster, 100);
  await cluster.join();
  assert.deepEqual(await cluster.fetch(squares.all), squares.results);
}
