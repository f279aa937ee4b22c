/** The servers, workers and coordinators of one test; `close` ends them all. */

import assert from 'node:assert/strict';
import { ClusterCoordinator, type ClusterOptions, type RemoteValue } from 'allstop/cluster';
import { NatsStrategy, type NatsStrategyOptions } from 'allstop/nats';
import { freePort, NatsServer } from './nats-server.ts';
import { NatsWorker, type WorkerOptions } from './nats-worker.ts';
import { TcpProxy } from './tcp-proxy.ts';

const module = new URL('../fixtures/cluster-nats-faults.mjs', import.meta.url);

/** So that tests of nodes that die need not wait for the default of 10 s. */
const LOST_AFTER_MS = 3_000;

type MetaCluster = { leader?: string; replicas?: { current: boolean; offline?: boolean }[] };

/** Resolves to whether the servers of these monitors come together in time, as one JetStream. */
async function areTogether(monitors: number[], withinMs = 15_000): Promise<boolean> {
  const end = performance.now() + withinMs;
  while (performance.now() < end) {
    const clusters = await Promise.all(
      monitors.map(async (port): Promise<MetaCluster> => {
        const answer = await fetch(`http://127.0.0.1:${port}/jsz`);
        return ((await answer.json()) as { meta_cluster?: MetaCluster }).meta_cluster ?? {};
      }),
    );
    // Only the leader names the others.
    const others = clusters.flatMap(({ replicas = [] }) => replicas);
    const isKnown = clusters.every(({ leader }) => leader && leader === clusters[0]?.leader);
    const areHeard = others.every(({ current, offline }) => current && !offline);
    if (isKnown && others.length === monitors.length - 1 && areHeard) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

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

  /** A cluster of three servers. `config`: more lines for each. */
  static async openThree(config = ''): Promise<NatsScene> {
    for (;;) {
      const scene = new NatsScene();
      const monitors = await scene.#startThree(config);
      // Of three servers one sometimes cannot join the others for more than a minute (nats-server
      // 2.10.27, without allstop: 4 of 98 times if they are started at once).
      if (await areTogether(monitors)) return scene;
      await scene.close();
    }
  }

  /** @returns the ports at which the servers can be watched */
  async #startThree(config: string): Promise<number[]> {
    const ports = [await freePort(), await freePort(), await freePort()];
    const routes = ports.map((port) => `nats://127.0.0.1:${port}`).join(',');
    const monitors: number[] = [];
    for (const [at, port] of ports.entries()) {
      const monitor = await freePort();
      const server = await NatsServer.start(
        `server_name: s${at}\nhttp: "127.0.0.1:${monitor}"\n` +
          `cluster { name: c, listen: "127.0.0.1:${port}", routes: [${routes}] }\n${config}`,
      );
      this.servers.push(server);
      monitors.push(monitor);
    }
    return monitors;
  }

  /**
   * A hub and a leaf of it, whose link goes through a proxy. With `ownDomains` each has a JetStream of its
   * own; else the leaf uses that of the hub's domain, 'hub'.
   */
  static async openHubAndLeaf({ ownDomains = false } = {}): Promise<{
    scene: NatsScene;
    hub: NatsServer;
    leaf: NatsServer;
    link: TcpProxy;
  }> {
    const scene = new NatsScene();
    const port = await freePort();
    const hub = await NatsServer.start(
      `server_name: hub\nleafnodes { listen: "127.0.0.1:${port}" }`,
      { jetstream: { domain: 'hub' } },
    );
    const link = await TcpProxy.to(port);
    const leaf = await NatsServer.start(
      `server_name: leaf\nleafnodes { reconnect: 1, remotes: [{ url: "nats://${link.address}" }] }`,
      { jetstream: ownDomains ? { domain: 'leaf' } : false },
    );
    scene.servers.push(hub, leaf);
    scene.#proxies.push(link);
    return { scene, hub, leaf, link };
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
    options: ClusterOptions = {},
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
    options: ClusterOptions = {},
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
