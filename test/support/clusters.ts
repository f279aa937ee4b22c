/** The kinds of clusters that the same stories are told about, and what tells them. */

import {
  ClusterCoordinator,
  type ClusterCoordinatorOptions,
  LocalStrategy,
  type RemoteValue,
} from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from 'vitest';
import { NatsServer } from './nats-server.ts';
import { NatsWorker } from './nats-worker.ts';
import { type Visit, Visits } from './visits.ts';

/** What is scheduled, if nothing else is said. */
export const module = new URL('../fixtures/cluster-tasks.mjs', import.meta.url);

export type Kind = {
  name: string;
  /** Of functions of that module. */
  connect(workers: number, options: ClusterCoordinatorOptions, module: URL): ClusterCoordinator;
  /** Workers are threads of this process: memory can be shared with them, and moved. */
  isThread: boolean;
  /** They are threads, wherever. */
  hasThreads: boolean;
  /** They are started by somebody else. */
  isRemote: boolean;
  /** Before all tests of a file. */
  open?(): Promise<void>;
  /** After each, when its clusters are closed. */
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

/** Each worker is a process of its own, with one thread, and the server is the file's. */
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

export type Clusters = {
  start(workers?: number, options?: ClusterCoordinatorOptions, url?: URL): ClusterCoordinator;
  /** Where functions stop over. */
  readonly visits: Visits;
  /** A function that runs, and goes on when the test says so. */
  running(
    cluster: ClusterCoordinator,
    name: string,
  ): Promise<{ value: RemoteValue<string>; visit: Visit }>;
  /** One that has failed, of which nobody has been told. */
  failed(cluster: ClusterCoordinator, message: string): Promise<void>;
};

/** For the tests of one `describe`: clusters of that kind, each of which is closed after its test. */
export function useClusters(kind: Kind): Clusters {
  const visits = new Visits();
  let clusters: ClusterCoordinator[] = [];

  beforeAll(() => kind.open?.());
  afterAll(() => kind.close?.());
  beforeEach(() => visits.open());

  afterEach(async () => {
    // Functions that still wait for the test end with their connection.
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

/** What it rejects with. */
export async function errorOf(promise: Promise<unknown>): Promise<any> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('It has not failed');
}
