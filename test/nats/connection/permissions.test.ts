// @module-tag nats
// The configurations of examples/nats/: a cluster works with exactly these permissions, needs
// each of them, and a worker cannot act as a coordinator.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { connect, type NatsConnection, nkeys } from '@nats-io/transport-node';
import { ClusterCoordinator } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { afterEach, describe, expect, it } from 'vitest';
import { Certificates } from '../../support/certificates.ts';
import { diagnose, doctor, problemsOf } from '../../support/nats-doctor.ts';
import { NatsServer } from '../../support/nats-server.ts';
import { NatsWorker } from '../../support/nats-worker.ts';
import { untilReport, whyNotReady } from '../../support/not-ready.ts';

const module = new URL('../../fixtures/cluster-nats-tasks.mjs', import.meta.url);
const file = (name: string): string =>
  fileURLToPath(new URL(`../../../examples/nats/${name}`, import.meta.url));
const CLUSTER = 'main';
const PASSWORDS = {
  coordinator: 'coordinator-secret',
  worker: 'worker-secret',
  doctor: 'doctor-secret',
};
type Role = keyof typeof PASSWORDS;
const SERVER_ENV = {
  ALLSTOP_COORDINATOR_PASS: PASSWORDS.coordinator,
  ALLSTOP_WORKER_PASS: PASSWORDS.worker,
  ALLSTOP_DOCTOR_PASS: PASSWORDS.doctor,
};

const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).toReversed()) await end();
});

async function serve(path = file('server.conf'), env = {}): Promise<NatsServer> {
  const server = await NatsServer.startFrom(path, { ...SERVER_ENV, ...env });
  ending.push(() => server.close());
  return server;
}

const envOf = (role: Role): NodeJS.ProcessEnv => ({
  ALLSTOP_NATS_USER: role,
  ALLSTOP_NATS_PASS: PASSWORDS[role],
});

function coordinate(server: NatsServer): ClusterCoordinator {
  const cluster = new ClusterCoordinator(
    new NatsStrategy({
      module,
      servers: server.address,
      cluster: CLUSTER,
      user: 'coordinator',
      pass: PASSWORDS.coordinator,
    }),
  );
  ending.push(() => cluster.close());
  return cluster;
}

function work({ address }: NatsServer, env = {}): NatsWorker {
  const worker = new NatsWorker({
    module,
    servers: address,
    cluster: CLUSTER,
    env: { ...envOf('worker'), ...env },
  });
  ending.push(() => worker.kill());
  return worker;
}

async function squares(cluster: ClusterCoordinator): Promise<void> {
  await cluster.ready();
  const value = await cluster.schedule('square', [7]);
  expect(await value.fetch()).toBe(49);
}

describe('server.conf', () => {
  it('lets a cluster work, and a doctor look', async () => {
    const server = await serve();
    const cluster = coordinate(server);
    const worker = work(server);
    await squares(cluster);
    expect(await diagnose(server.address, CLUSTER, envOf('doctor'))).toMatchObject({
      status: 0,
      ok: true,
    });
    // A second run takes over from the first.
    const newer = coordinate(server);
    await squares(newer);
    await expect(cluster.join()).rejects.toThrow(/A newer run has taken over/);
    await newer.schedule('stopsTheCluster', ['over']);
    await expect(newer.join()).rejects.toMatchObject({ cause: { message: 'over' } });
    const events = worker.events.map(({ event }) => event);
    expect(events).not.toContain('disconnected');
    expect(events).not.toContain('forbidden');
    expect(newer.coordinator.shouldStop()).toBe(true);
  });

  it('lets nobody in without credentials, or with those of another', async () => {
    const server = await serve();
    for (const options of [{}, { user: 'worker', pass: PASSWORDS.coordinator }]) {
      await expect(connect({ servers: server.address, ...options })).rejects.toThrow(
        /authorization violation/i,
      );
    }
  });
});

it('server.conf with nkeys in place of passwords', { tags: 'long' }, async () => {
  const [coordinator, worker] = [nkeys.createUser(), nkeys.createUser()];
  const seedOf = (pair: typeof worker): string => new TextDecoder().decode(pair.getSeed());
  const folder = mkdtempSync(join(tmpdir(), 'allstop-nkeys-'));
  ending.push(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'server.conf');
  writeFileSync(
    path,
    readFileSync(file('server.conf'), 'utf8')
      .replace(/user: coordinator, password: \$\w+/, 'nkey: $COORDINATOR_NKEY')
      .replace(/user: worker, password: \$\w+/, 'nkey: $WORKER_NKEY'),
  );
  const server = await serve(path, {
    COORDINATOR_NKEY: coordinator.getPublicKey(),
    WORKER_NKEY: worker.getPublicKey(),
  });
  const cluster = new ClusterCoordinator(
    new NatsStrategy({
      module,
      servers: server.address,
      cluster: CLUSTER,
      nkey: seedOf(coordinator),
    }),
  );
  ending.push(() => cluster.close());
  work(server, {
    ALLSTOP_NATS_USER: '',
    ALLSTOP_NATS_PASS: '',
    ALLSTOP_NATS_NKEY: seedOf(worker),
  });
  await squares(cluster);
});

it('tls.conf is the same, encrypted', { tags: 'long' }, async () => {
  const certificates = new Certificates();
  ending.push(() => certificates.remove());
  const server = await serve(file('tls.conf'), {
    ALLSTOP_TLS_CERT: certificates.path('server.pem'),
    ALLSTOP_TLS_KEY: certificates.path('server.key'),
  });
  const ca = certificates.path('ca.pem');
  const cluster = new ClusterCoordinator(
    new NatsStrategy({
      module,
      servers: `tls://coordinator:${PASSWORDS.coordinator}@${server.address}`,
      cluster: CLUSTER,
      tls: { caFile: ca },
    }),
  );
  ending.push(() => cluster.close());
  const env = { ALLSTOP_NATS_CA_FILE: ca };
  work(server, env);
  await squares(cluster);
  const found = await diagnose(server.address, CLUSTER, { ...envOf('doctor'), ...env });
  expect(found).toMatchObject({ status: 0, ok: true });
});

describe('each permission is needed', { tags: 'long' }, () => {
  const text = readFileSync(file('server.conf'), 'utf8');
  const lines = text.split('\n');
  const permissions: [role: Role, line: string, at: number][] = [];
  let role: Role = 'coordinator';
  for (const [at, line] of lines.entries()) {
    const begins = /^(COORDINATOR|WORKER|DOCTOR):/.exec(line)?.[1]?.toLowerCase();
    if (begins !== undefined) role = begins as Role;
    if (/^ {4}"|^ {2}allow_responses/.test(line)) permissions.push([role, line.trim(), at]);
  }
  it('or the list would be empty', () => {
    expect(permissions).toHaveLength(10 + 6 + 3 + 4 + 1 + 1 + 4);
  });

  it.each(permissions)('by the %s: %s', async (who, line, at) => {
    const folder = mkdtempSync(join(tmpdir(), 'allstop-permissions-'));
    ending.push(() => rmSync(folder, { recursive: true }));
    const less = join(folder, 'server.conf');
    // Replace the line by a useless permission: an empty list would permit everything.
    const instead = line.startsWith('"') ? '"nothing"' : '';
    writeFileSync(less, lines.with(at, instead).join('\n'));
    const server = await serve(less);
    const cluster = coordinate(server);
    const worker = work(server);
    const isForbidden = (cause: unknown): boolean =>
      typeof cause === 'string' && /does not permit/.test(cause);

    const over = new AbortController();
    ending.push(() => over.abort());
    const byCoordinator = async (one: ClusterCoordinator): Promise<Role> => {
      await untilReport(one, ({ engine }) => isForbidden(engine.cause), over.signal);
      return 'coordinator';
    };
    const byWorker = async (): Promise<Role> => {
      for (;;) if (isForbidden((await worker.next('forbidden'))['cause'])) return 'worker';
    };
    /** Uses every subject once. @returns who has noticed that the permission is missing */
    const story = async (): Promise<Role> => {
      await squares(cluster);
      await cluster.schedule('stopsTheCluster', ['over']);
      await cluster.join().catch(() => {});
      const newer = coordinate(server);
      await newer.ready();
      newer.coordinator.requestStop();
      const found = await diagnose(server.address, CLUSTER, envOf('doctor'));
      const own = problemsOf(found).filter(({ cause }) => !cause?.startsWith('the coordinator'));
      if (own.some(({ cause }) => isForbidden(cause))) return 'doctor';
      return await byCoordinator(newer);
    };
    const first = who === 'doctor' ? [story()] : [byCoordinator(cluster), byWorker(), story()];
    // The older run, which the newer has superseded, ends without having noticed.
    expect(await Promise.any(first)).toBe(who);
    for (const each of first) each.catch(() => {}); // the others end with the cluster
  });
});

describe('who cannot act as another', () => {
  /** The permission errors that the server reports for an attempt. */
  async function refusals(
    client: NatsConnection,
    attempt: (client: NatsConnection) => void,
  ): Promise<string[]> {
    const said: string[] = [];
    const watch = async (): Promise<void> => {
      for await (const status of client.status()) {
        if (status.type === 'error') said.push(status.error.message);
      }
    };
    const watching = watch();
    attempt(client);
    await client.flush();
    await client.close();
    await watching;
    return said;
  }

  const toBucket = ['$KV.allstop_main.run', '$JS.API.STREAM.DELETE.KV_allstop_main'];
  const asCoordinator = ['allstop.main.node.n', 'allstop.main.down.s', ...toBucket];
  const inboxes = ['allstop.main.inbox.coordinator.x.y', 'allstop.main.inbox.doctor.x.y'];
  const publish: [Role, string][] = [
    ...[...asCoordinator, 'allstop.main.who', 'allstop.main.report', ...inboxes].map(
      (subject): [Role, string] => ['worker', subject],
    ),
    ...[...asCoordinator, 'allstop.main.hello', 'allstop.main.up.s', ...inboxes].map(
      (subject): [Role, string] => ['doctor', subject],
    ),
    ...['allstop.main.hello', 'allstop.main.up.s', ...toBucket.slice(1), 'allstop.other.who'].map(
      (subject): [Role, string] => ['coordinator', subject],
    ),
  ];
  const heard = ['allstop.main.hello', 'allstop.main.up.*', 'allstop.main.report'];
  const subscribe: [Role, string][] = [
    ...[...heard, 'allstop.main.inbox.>', '_INBOX.>', 'allstop.>', '>'].map(
      (subject): [Role, string] => ['worker', subject],
    ),
    ...[...heard, 'allstop.main.down.*', 'allstop.main.inbox.coordinator.>', '>'].map(
      (subject): [Role, string] => ['doctor', subject],
    ),
  ];

  it.each(['publish', 'subscribe'] as const)('%s is refused', async (how) => {
    const server = await serve();
    for (const [user, subject] of how === 'publish' ? publish : subscribe) {
      const client = await connect({
        servers: server.address,
        user,
        pass: PASSWORDS[user],
        reconnect: false,
      });
      const said = await refusals(client, (nats) => {
        if (how === 'publish') nats.publish(subject, 'x');
        else nats.subscribe(subject, { callback: () => {} });
      });
      expect(said, `${user} ${subject}`).toEqual([
        expect.stringMatching(/^Permissions Violation for (Publish|Subscription) to /),
      ]);
    }
  });

  it('a worker with the coordinator’s part is told so', async () => {
    const server = await serve();
    const cluster = new ClusterCoordinator(
      new NatsStrategy({
        module,
        servers: server.address,
        cluster: CLUSTER,
        user: 'worker',
        pass: PASSWORDS.worker,
      }),
    );
    ending.push(() => cluster.close());
    const { message } = await whyNotReady(cluster, ({ engine }) => engine.cause !== undefined);
    expect(message).toMatch(
      /the engine, \w+: the server does not permit a subject that is needed .*docs\/nats\.md/,
    );
  });
});

describe('credentials', () => {
  it('are not in the strategy for those who print it', async () => {
    const SECRET = 'never-printed';
    for (const given of [{ user: 'a', pass: SECRET }, { token: SECRET }, { nkey: SECRET }]) {
      const strategy = new NatsStrategy({ module, servers: 'h', cluster: CLUSTER, ...given });
      expect(inspect(strategy, { depth: 9, showHidden: true, getters: true })).not.toContain(
        SECRET,
      );
      expect(JSON.stringify(strategy)).not.toContain(SECRET);
    }
    const address = `nats://app:${SECRET}@h:4222/path`;
    for (const servers of [address, `nats://${SECRET}@ h`]) {
      expect(() => new NatsStrategy({ module, servers, cluster: CLUSTER })).toThrow(
        expect.not.objectContaining({ message: expect.stringContaining(SECRET) }),
      );
    }
  });

  it('are not in logs, errors or what a worker and a doctor say', async () => {
    const server = await serve();
    const worker = work(server, { NODE_DEBUG: 'allstop' });
    const cluster = coordinate(server);
    await squares(cluster);
    const wrong = { ...envOf('worker'), ALLSTOP_NATS_PASS: 'wrong-secret' };
    const refused = work(server, wrong);
    const said = await refused.next('disconnected');
    const printed = await doctor(['--servers', server.address, '--cluster', CLUSTER], wrong);
    const failing = new ClusterCoordinator(
      new NatsStrategy({
        module,
        servers: server.address,
        cluster: CLUSTER,
        user: 'coordinator',
        pass: 'wrong-secret',
        unavailableAfterMs: 300,
      }),
    );
    ending.push(() => failing.close());
    const errors = await Promise.all([
      failing.ready().catch((error: unknown) => error),
      failing.schedule('square', [1]).catch((error: unknown) => error),
      failing.join().catch((error: unknown) => error),
    ]);
    const all = [said, worker.events, printed, errors, failing, cluster].map((each) =>
      inspect(each, { depth: 9, showHidden: true }),
    );
    for (const text of all) expect(text).not.toMatch(/-secret/);
  });
});
