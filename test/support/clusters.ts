/** The kinds of clusters (threads, processes, NATS) with which the same tests run. */

import {
  ClusterCoordinator,
  type ClusterOptions,
  LocalStrategy,
  type RemoteValue,
} from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from 'vitest';
import { NatsServer } from './nats-server.ts';
import { NatsWorker } from './nats-worker.ts';
import { type Visit, Visits } from './visits.ts';

/** The default module of the clusters. */
export const module = new URL('../fixtures/cluster-tasks.mjs', import.meta.url);

export type Kind = {
  name: string;
  /** Makes a cluster whose functions are the exports of `module`. */
  connect(workers: number, options: ClusterOptions, module: URL): ClusterCoordinator;
  /** Whether workers are threads of this process, so that memory can be shared and transferred. */
  isThread: boolean;
  /** Whether functions run on worker threads, in this process or in another. */
  hasThreads: boolean;
  /** Whether workers are started by the test, not by the cluster. */
  isRemote: boolean;
  /** Called before all tests of a file. */
  open?(): Promise<void>;
  /** Called after each test, when its clusters are closed. */
  clean?(): Promise<void>;
  close?(): Promise<void>;
};

const local = (isolation: 'thread' | 'process'): Kind => ({
  name: isolation,
  connect: (workers, options, url) =>
    new ClusterCoordinator(new LocalStrategy({ module: url, workers, isolation }), options),
  isThread: isolation === 'thread',
  hasThreads: isolation === 'thread',
  isRemote: false,
});

/** Each worker is a process with one thread; all tests of a file share one server. */
function nats(): Kind {
  let server: NatsServer;
  let workers: NatsWorker[] = [];
  let made = 0;
  return {
    name: 'nats',
    isThread: false,
    hasThreads: true,
    isRemote: true,
    async open() {
      server = await NatsServer.start();
    },
    connect(count, options, url) {
      const cluster = `test-${++made}`;
      const settings = { module: url, servers: server.address, cluster };
      const started = Array.from({ length: count }, () => new NatsWorker(settings));
      workers.push(...started);
      return new ClusterCoordinator(new NatsStrategy({ ...settings, minWorkers: count }), options);
    },
    async clean() {
      const ended = workers.map((worker) => worker.kill());
      workers = [];
      await Promise.all(ended);
    },
    close: () => server.close(),
  };
}

export const localKinds: Kind[] = [local('thread'), local('process')];
export const kinds: Kind[] = [...localKinds, nats()];

/**
 * The same stories about each of these kinds. `npm test` runs those about the quick kinds,
 * `npm run test:long` the others.
 */
export function describeKinds(
  chosen: Kind[],
  tell: (kind: Kind) => void,
  quick: string[] = ['thread'],
): void {
  for (const kind of chosen) {
    const tags = [
      ...(kind.isRemote ? ['nats'] : []),
      ...(quick.includes(kind.name) ? [] : ['long']),
    ];
    describe(`workers as ${kind.name}`, { tags }, () => tell(kind));
  }
}

/** The same stories about workers as threads, in `npm test`, and as processes, among the long tests. */
export function describeIsolations(
  title: string,
  tell: (isolation: 'thread' | 'process') => void,
): void {
  describe(`${title} thread`, () => tell('thread'));
  describe(`${title} process`, { tags: 'long' }, () => tell('process'));
}

export type Clusters = {
  start(workers?: number, options?: ClusterOptions, url?: URL): ClusterCoordinator;
  /** Lets functions wait until the test lets them go on. */
  readonly visits: Visits;
  /** Schedules a function and resolves when it runs; it waits until the test calls `visit.pass`. */
  running(
    cluster: ClusterCoordinator,
    name: string,
  ): Promise<{ value: RemoteValue<string>; visit: Visit }>;
  /** Schedules a function that fails, and waits until it has; no join has reported it yet. */
  failed(cluster: ClusterCoordinator, message: string): Promise<void>;
};

/** Clusters of one kind for the tests of one `describe`, closed after each test. */
export function useClusters(kind: Kind): Clusters {
  const visits = new Visits();
  let clusters: ClusterCoordinator[] = [];

  beforeAll(() => kind.open?.());
  afterAll(() => kind.close?.());
  beforeEach(() => visits.open());

  afterEach(async () => {
    // visits.close() ends functions that still wait for the test: close() waits for those.
    const closing = clusters.map((cluster) => cluster.close());
    clusters = [];
    await visits.close();
    await Promise.all(closing);
    await kind.clean?.();
  });

  return {
    start(workers = 1, options = {}, url = module) {
      const cluster = kind.connect(workers, { cancelGraceMs: 600_000, ...options }, url);
      clusters.push(cluster);
      return cluster;
    },
    visits,
    async running(cluster, name) {
      const value = await cluster.schedule('hold', [visits.path, name]);
      return { value, visit: await visits.next(name) };
    },
    async failed(cluster, message) {
      const value = await cluster.schedule('fail', [message]);
      await expect(value.fetch()).rejects.toThrow(message);
    },
  };
}

/** Resolves to the error that the promise rejects with. */
export async function errorOf(promise: Promise<unknown>): Promise<any> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('It has not failed');
}
