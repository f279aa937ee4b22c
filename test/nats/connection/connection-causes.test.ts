// @module-tag nats
// Everything that keeps a coordinator from its servers, provoked for real: `ready()` and
// `allstop doctor` both name the cause and the remedy.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { createServer as createWebServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect as connectToNats, nkeys } from '@nats-io/transport-node';
import { ClusterCoordinator } from 'allstop/cluster';
import { NatsStrategy, type NatsStrategyOptions } from 'allstop/nats';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Certificates } from '../../support/certificates.ts';
import { type Diagnosis, diagnose, doctor, problemsOf } from '../../support/nats-doctor.ts';
import { NatsScene } from '../../support/nats-scene.ts';
import { NatsServer } from '../../support/nats-server.ts';
import { whyNotReady } from '../../support/not-ready.ts';
import { publishedCopy } from '../../support/published-copy.ts';

const module = new URL('../../fixtures/cluster-nats-tasks.mjs', import.meta.url);
const root = fileURLToPath(new URL('../../..', import.meta.url));
const LADDER = ['dns', 'tcp', 'nats', 'tls', 'auth', 'jetstream'];
const SECRET = 'correct-horse-battery';

let certificates: Certificates;
const ending: (() => unknown)[] = [];

beforeAll(() => {
  certificates = new Certificates();
});
afterAll(() => certificates.remove());
afterEach(async () => {
  for (const end of ending.splice(0).toReversed()) await end();
});

type Options = Omit<NatsStrategyOptions, 'module' | 'servers' | 'cluster'>;

function start(servers: string, options: Options = {}): ClusterCoordinator {
  const cluster = new ClusterCoordinator(
    new NatsStrategy({ module, servers, cluster: 'causes', ...options }),
  );
  ending.push(() => cluster.close());
  return cluster;
}

/** Starts the server on the loopback. @returns its address */
async function listen(server: Server): Promise<string> {
  // A client that gives up may reset its connection.
  server.on('connection', (socket: Socket) => void socket.on('error', () => {}));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ending.push(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function nats(config = '', options = {}): Promise<string> {
  const server = await NatsServer.start(config, options);
  ending.push(() => server.close());
  return server.address;
}

/** A listener whose backlog is full, so that the system drops further connection attempts. */
async function fullListener(): Promise<string> {
  const script = `
    const server = require('node:net').createServer();
    server.listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => {
      require('node:fs').writeSync(1, String(server.address().port));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  ending.push(() => child.kill('SIGKILL'));
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  const address = { host: '127.0.0.1', port: Number(port) };
  for (let at = 0; at < 2; at += 1) {
    const socket = connect(address);
    ending.push(() => socket.destroy());
    await once(socket, 'connect');
  }
  return `${address.host}:${address.port}`;
}

const user = `authorization { user: app, password: "${SECRET}" }`;
const nkeyOf = (): [seed: string, config: string] => {
  const pair = nkeys.createUser();
  const config = `authorization { users: [ { nkey: ${pair.getPublicKey()} } ] }`;
  return [new TextDecoder().decode(pair.getSeed()), config];
};

type Case = {
  servers: () => Promise<string> | string;
  /** Options of the strategy; `env` has the same for the doctor. */
  options?: () => Options;
  env?: () => NodeJS.ProcessEnv;
  rung: string;
  cause: RegExp;
  remedy: RegExp;
  tags?: string[];
  /** One doctor looks at the servers of all cases with the same word, which need the same `env`. */
  seen?: string;
};

const cases: Record<string, Case> = {
  'a name that nobody knows': {
    seen: 'without anything',
    servers: () => 'no-such-host.invalid:4222',
    rung: 'dns',
    cause: /name of the server is unknown \(DNS\).*ENOTFOUND no-such-host\.invalid/,
    remedy: /check the name/,
  },
  'a port where nobody listens': {
    seen: 'without anything',
    servers: () => '127.0.0.1:1',
    rung: 'tcp',
    cause: /refuses connections.*ECONNREFUSED/,
    remedy: /start nats-server there/,
  },
  'a host that accepts, and never speaks': {
    tags: ['long'],
    servers: () => {
      const server = createServer((socket) => socket.resume());
      return listen(server);
    },
    rung: 'nats',
    cause: /the host is silent, or the server hangs/,
    remedy: /firewalls/,
  },
  ...(process.platform === 'linux' && {
    'a host that drops what comes': {
      tags: ['long'],
      servers: fullListener,
      rung: 'tcp',
      cause: /host of the server cannot be reached.*(?:has not answered within|ETIMEDOUT)/,
      remedy: /the network and firewalls/,
    },
  }),
  'a host that hangs up': {
    tags: ['long'],
    servers: () => listen(createServer((socket) => socket.destroy())),
    rung: 'nats',
    cause: /closes the connection at once/,
    remedy: /check the port/,
  },
  'a server that greets, and then is silent': {
    tags: ['long'],
    servers: () => {
      const info = {
        server_id: 'x',
        version: '2.10.0',
        proto: 1,
        headers: true,
        max_payload: 1024,
      };
      const greet = `INFO ${JSON.stringify(info)} \r\n`;
      return listen(
        createServer((socket) => {
          socket.resume();
          socket.write(greet);
        }),
      );
    },
    rung: 'auth',
    cause: /the server does not answer in time/,
    remedy: /the server’s log/,
  },
  'a web server': {
    tags: ['long'],
    servers: () => listen(createWebServer()),
    rung: 'nats',
    cause: /not a NATS server.*HTTP\/1\.1 400/,
    remedy: /check the port/,
  },
  'another service': {
    seen: 'without anything',
    servers: () => listen(createServer((socket) => socket.end('220 mail ESMTP\r\n'))),
    rung: 'nats',
    cause: /not a NATS server.*220 mail ESMTP/,
    remedy: /check the port/,
  },
  'TLS that is not there': {
    seen: 'by tls://',
    servers: async () => `tls://${await nats()}`,
    rung: 'tls',
    cause: /TLS was requested, but the server does not offer it/,
    remedy: /leave out `tls` and tls:\/\//,
  },
  'TLS that was not asked for, of an unknown authority': {
    tags: ['long'],
    servers: () => nats(certificates.config()),
    rung: 'tls',
    cause: /certificate of the server is not trusted/,
    remedy: /tls\.caFile/,
  },
  'a certificate of an unknown authority': {
    seen: 'by tls://',
    servers: async () => `tls://${await nats(certificates.config())}`,
    rung: 'tls',
    cause: /certificate of the server is not trusted/,
    remedy: /tls\.caFile/,
  },
  'a certificate for another name': {
    seen: 'with an authority',
    servers: () => {
      certificates.make('other', 'DNS:elsewhere.invalid');
      return nats(certificates.config('other'));
    },
    options: () => ({ tls: { caFile: certificates.path('ca.pem') } }),
    env: () => ({ ALLSTOP_NATS_CA_FILE: certificates.path('ca.pem') }),
    rung: 'tls',
    cause: /certificate of the server is not trusted.*elsewhere\.invalid/,
    remedy: /names and dates/,
  },
  'a certificate that has expired': {
    tags: ['long'],
    servers: () => {
      certificates.make('expired', 'IP:127.0.0.1', -1);
      return nats(certificates.config('expired'));
    },
    options: () => ({ tls: { caFile: certificates.path('ca.pem') } }),
    env: () => ({ ALLSTOP_NATS_CA_FILE: certificates.path('ca.pem') }),
    rung: 'tls',
    cause: /certificate of the server is not trusted.*expired/,
    remedy: /names and dates/,
  },
  'a server that wants a certificate': {
    seen: 'with an authority',
    servers: () => {
      const more = `ca_file: "${certificates.path('ca.pem')}", verify: true`;
      return nats(certificates.config('server', more));
    },
    options: () => ({ tls: { caFile: certificates.path('ca.pem') } }),
    env: () => ({ ALLSTOP_NATS_CA_FILE: certificates.path('ca.pem') }),
    rung: 'tls',
    cause: /requires a client certificate/,
    remedy: /tls\.certFile/,
  },
  'no credentials': {
    seen: 'without anything',
    servers: () => nats(user),
    rung: 'auth',
    cause: /wants credentials, and none were given/,
    remedy: /set ALLSTOP_NATS_USER and ALLSTOP_NATS_PASS/,
  },
  'a wrong password': {
    servers: () => nats(user),
    options: () => ({ user: 'app', pass: `${SECRET}-not` }),
    env: () => ({ ALLSTOP_NATS_USER: 'app', ALLSTOP_NATS_PASS: `${SECRET}-not` }),
    rung: 'auth',
    cause: /does not accept the credentials/,
    remedy: /check user and password/,
  },
  'a wrong token': {
    tags: ['long'],
    servers: () => nats(`authorization { token: "${SECRET}" }`),
    options: () => ({ token: `${SECRET}-not` }),
    env: () => ({ ALLSTOP_NATS_TOKEN: `${SECRET}-not` }),
    rung: 'auth',
    cause: /does not accept the credentials/,
    remedy: /token/,
  },
  'a wrong nkey': (() => {
    const [seed] = nkeyOf();
    return {
      servers: () => nats(nkeyOf()[1]),
      options: () => ({ nkey: seed }),
      env: () => ({ ALLSTOP_NATS_NKEY: seed }),
      tags: ['long'],
      rung: 'auth',
      cause: /does not accept the credentials/,
      remedy: /nkey/,
    };
  })(),
  'an nkey that is not valid': {
    servers: () => nats(nkeyOf()[1]),
    options: () => ({ nkey: `SU${SECRET}` }),
    env: () => ({ ALLSTOP_NATS_NKEY: `SU${SECRET}` }),
    rung: 'auth',
    cause: /nkey seed or the credentials file is not valid/,
    remedy: /seed of an nkey/,
  },
  'a server that takes no more connections': {
    seen: 'without anything',
    servers: async () => {
      const address = await nats('max_connections: 1');
      const other = await connectToNats({ servers: address });
      ending.push(() => other.close());
      return address;
    },
    rung: 'nats',
    cause: /as many connections as it permits/,
    remedy: /max_connections/,
  },
  'a server without JetStream': {
    seen: 'without anything',
    servers: () => nats('', { jetstream: false }),
    rung: 'jetstream',
    cause: /has no JetStream/,
    remedy: /--jetstream/,
  },
  'an account without JetStream': {
    servers: () =>
      nats(`accounts {
        A { jetstream: enabled, users: [ { user: a, password: a } ] }
        B { users: [ { user: app, password: "${SECRET}" } ] }
      }`),
    options: () => ({ user: 'app', pass: SECRET }),
    env: () => ({ ALLSTOP_NATS_USER: 'app', ALLSTOP_NATS_PASS: SECRET }),
    rung: 'jetstream',
    cause: /no JetStream, or not for this account/,
    remedy: /for the account/,
  },
};

const sights = new Map<string, [string, Case][]>();
for (const [name, each] of Object.entries(cases)) {
  const sight = each.seen ?? name;
  sights.set(sight, [...(sights.get(sight) ?? []), [name, each]]);
}

describe.each([...sights])('seen %s', (_, seen) => {
  const tags = seen.flatMap(([, each]) => each.tags ?? []);
  const addresses: string[] = [];
  const serving: (() => unknown)[] = [];
  let found: Diagnosis;
  let isSeen = false;

  /** Starts the servers of all cases, and has the doctor look at them. */
  async function look(): Promise<void> {
    isSeen = true;
    for (const [, { servers }] of seen) addresses.push(await servers());
    serving.push(...ending.splice(0));
    found = await diagnose(addresses.join(), 'causes', seen[0]?.[1].env?.());
  }
  afterAll(async () => {
    for (const end of serving.toReversed()) await end();
  });

  it.each(seen)(
    '%s is named by ready() and by doctor, without a secret',
    { tags },
    async (...which) => {
      if (!isSeen) await look();
      const [name, { options, rung, cause, remedy }] = which;
      const servers = addresses[seen.findIndex(([each]) => each === name)] as string;
      const target = servers.replace('tls://', '');
      const cluster = start(servers, options?.());
      const phase = rung === 'jetstream' ? 'jetstream' : 'connecting';
      const error = await whyNotReady(cluster, ({ engine }) => engine.cause !== undefined);
      const { report, message } = error as unknown as { report: any; message: string };
      expect(report).toMatchObject({ ready: false, engine: { phase } });
      expect(report.engine.cause).toMatch(cause);
      expect(report.engine.cause).toContain(target);
      expect(report.engine.remedy).toMatch(remedy);
      expect(message.split('\n')[0]).toContain(`. Blocking: the engine ${phase}`);
      expect(message).toContain(
        `the engine, ${phase}: ${report.engine.cause}. What to do: ${report.engine.remedy}`,
      );

      expect(found).toMatchObject({ status: 1, ok: false });
      expect(problemsOf(found)).toHaveLength(seen.length);
      const checks = found.checks.filter((each) => each.target === target);
      const problem = checks.at(-1);
      expect(problem).toMatchObject({ ok: false, name: rung });
      expect(problem?.cause).toMatch(cause);
      expect(problem?.remedy).toMatch(remedy);
      const passed = checks.slice(0, -1);
      expect(passed.every(({ ok }) => ok)).toBe(true);
      expect(passed.map(({ name: each }) => each)).toEqual(LADDER.slice(0, LADDER.indexOf(rung)));

      for (const text of [message, JSON.stringify(found)]) expect(text).not.toContain(SECRET);
    },
  );
});

describe('the way in that the server wants', () => {
  const [seed, nkeyConfig] = nkeyOf();
  it('by user and password: doctor gets in', () =>
    getsIn('', user, { ALLSTOP_NATS_USER: 'app', ALLSTOP_NATS_PASS: SECRET }));
  it.each([
    ['a token', `authorization { token: "${SECRET}" }`, { ALLSTOP_NATS_TOKEN: SECRET }],
    ['an nkey', nkeyConfig, { ALLSTOP_NATS_NKEY: seed }],
  ])('by %s: doctor gets in', { tags: 'long' }, getsIn);

  async function getsIn(_: string, config: string, env: NodeJS.ProcessEnv): Promise<void> {
    const found = await diagnose(await nats(config), undefined, env);
    expect(found).toMatchObject({ status: 0, ok: true });
    expect(JSON.stringify(found)).not.toContain(Object.values(env).at(-1));
  }

  it('by TLS, asked for or not', async () => {
    const address = await nats(certificates.config());
    const env = { ALLSTOP_NATS_CA_FILE: certificates.path('ca.pem') };
    for (const servers of [address, `tls://${address}`]) {
      expect(await diagnose(servers, undefined, env)).toMatchObject({ status: 0, ok: true });
    }
    const cluster = start(`tls://${address}`, {
      minWorkers: 0,
      tls: { caFile: env.ALLSTOP_NATS_CA_FILE },
    });
    await cluster.ready();
  });

  it('by TLS that comes before the greeting', async () => {
    const servers = await nats(certificates.config('server', 'handshake_first: true'));
    const tls = { caFile: certificates.path('ca.pem'), handshakeFirst: true };
    const cluster = start(servers, { minWorkers: 0, tls });
    await cluster.ready();
    await cluster.close();
  });
});

it('an authority whose file is missing', async () => {
  const caFile = certificates.path('none.pem');
  const cluster = start(await nats(certificates.config()), { tls: { caFile } });
  const { report } = await whyNotReady(cluster, ({ engine }) => engine.cause !== undefined);
  expect(report).toMatchObject({ ready: false, engine: { phase: 'connecting' } });
  expect(report.engine.cause).toMatch(/none\.pem doesn't exist/);
  expect(report.engine.remedy).toMatch(/files given as `tls`/);
});

it('more replicas than there are servers', { tags: 'long' }, async () => {
  const address = await nats();
  const cluster = start(address, { minWorkers: 0, replicas: 3 });
  const error = await whyNotReady(cluster, ({ engine }) => engine.cause !== undefined);
  const why = /jetstream: JetStream has too few servers, or too little space, for the bucket/;
  expect(error.message).toMatch(why);
  const { remedy } = error.report.engine;
  expect(remedy).toMatch(/lower `replicas` to their number/);
  const found = await diagnose(address, 'causes');
  expect(problemsOf(found)).toEqual([
    {
      name: 'coordinator',
      ok: false,
      target: 'causes',
      detail: 'a coordinator that does not hold the cluster yet: jetstream',
      cause: expect.stringMatching(why),
      remedy,
    },
  ]);
});

it('one server that is left of three', { tags: 'long' }, async () => {
  const scene = await NatsScene.openThree();
  ending.push(() => scene.close());
  const [first, ...others] = scene.servers as [NatsServer, NatsServer, NatsServer];
  await Promise.all(others.map((server) => server.kill()));
  const cluster = start(first.address, { minWorkers: 0, replicas: 3 });
  const error = await whyNotReady(cluster, ({ engine }) => engine.cause !== undefined);
  const why = /the server answers, but its JetStream does not: it has no leader/;
  expect(error.message).toMatch(why);
  const found = await diagnose(first.address, 'causes');
  // If the server that is left was the leader, it answers the doctor until it has noticed that it
  // leads nobody: the problem is then the coordinator's, whose bucket cannot be made.
  expect(problemsOf(found)).toMatchObject([{ cause: expect.stringMatching(why) }]);
});

it('credentials that are changed while it runs are the cause from then on', async () => {
  const server = await NatsServer.start(user);
  ending.push(() => server.close());
  const cluster = start(server.address, { user: 'app', pass: SECRET, minWorkers: 0 });
  await cluster.ready();
  server.reconfigure('authorization { user: app, password: "another" }');
  const error = await whyNotReady(cluster, ({ engine }) => /credentials/.test(engine.cause ?? ''));
  expect(error.message).toMatch(/connecting: the server does not accept the credentials/);
  server.reconfigure(user);
  await cluster.ready();
});

it('a server that goes away is the cause, and later its host', async () => {
  const server = await NatsServer.start();
  ending.push(() => server.close());
  const cluster = start(server.address, { minWorkers: 0 });
  await cluster.ready();
  await server.kill();
  const error = await whyNotReady(cluster, ({ engine }) => /REFUSED/.test(engine.cause ?? ''));
  expect(error.message).toMatch(/connecting: the host refuses connections/);
  await server.restart();
  await cluster.ready();
});

it('a host that hangs up, again and again: nothing is left at a signal of ours', {
  tags: 'long',
}, async () => {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', onWarning);
  ending.push(() => process.off('warning', onWarning));
  const tried = new Promise<void>((resolve) => {
    let left = 40;
    const server = createServer((socket) => {
      socket.destroy();
      left -= 1;
      if (left === 0) resolve();
    });
    void listen(server).then((address) => start(address));
  });
  await tried;
  expect(warnings).toEqual([]);
});

describe('without the client for NATS', () => {
  const { folder, cli } = publishedCopy({ compiled: true });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const problem = {
    name: 'client',
    ok: false,
    cause: expect.stringMatching(/^the client for NATS cannot be loaded \(.*transport-node/),
    remedy: 'npm install @nats-io/transport-node @nats-io/jetstream @nats-io/kv',
  };

  it('doctor says what to install, and looks at no server', async () => {
    const found = await diagnose('127.0.0.1:1,127.0.0.1:2', 'causes', {}, cli);
    expect(found).toMatchObject({ status: 1, ok: false });
    expect(found.checks).toEqual([expect.objectContaining({ name: 'binary', ok: true }), problem]);
  });

  it('and to people', async () => {
    const { status, stdout, stderr } = await doctor(['--servers', '127.0.0.1:1'], {}, cli);
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' });
    expect(stdout).toMatch(
      /^binary {2}ok {2}\S.*\nclient {2}NOT OK\n\nProblems:\n1\. client\n {3}Cause: the client .*\n {3}What to do: npm install .*\n$/,
    );
  });

  it('of which one package is missing', async () => {
    const scope = join(folder, 'node_modules/@nats-io');
    mkdirSync(scope);
    const modules = join(root, 'node_modules/@nats-io');
    const there = readdirSync(modules).filter((name) => name !== 'kv');
    for (const name of there) symlinkSync(join(modules, name), join(scope, name));
    const found = await diagnose('127.0.0.1:1', 'causes', {}, cli);
    expect(problemsOf(found)).toEqual([
      { ...problem, cause: expect.stringContaining('needs the package @nats-io/kv') },
    ]);
  });
});

it('of several servers doctor names the one that is wrong, and the cluster works', async () => {
  const [good, bad] = [await nats(), '127.0.0.1:1'];
  const cluster = start(`${bad},${good}`, { minWorkers: 0 });
  await cluster.ready();
  const { status, stdout, stderr } = await doctor([
    '--servers',
    `${bad},${good}`,
    '--cluster',
    'causes',
  ]);
  expect({ status, stderr }).toEqual({ status: 1, stderr: '' });
  expect(stdout).toMatch(new RegExp(`^${bad} +ok +NOT OK +- +- +- +-$`, 'm'));
  expect(stdout).toMatch(new RegExp(`^${good} +ok +ok +ok +none +none +ok$`, 'm'));
  expect(stdout).toMatch(
    /^coordinator +causes +ok +\S+ \(pid \d+\), started \d+ s ago: holds the cluster$/m,
  );
  expect(stdout).toMatch(
    new RegExp(`Problems:\\n1\\. tcp ${bad}\\n {3}Cause: .*\\n {3}What to do: .*\\n$`),
  );
  expect(stdout).not.toContain('\u001B');
});

it('a server that hangs: doctor ends, and so does ready()', { tags: 'long' }, async () => {
  const server = await NatsServer.start();
  ending.push(() => server.close());
  const cluster = start(server.address, { minWorkers: 0 });
  await cluster.ready();
  await server.kill('SIGSTOP');
  const began = performance.now();
  const found = await diagnose(server.address, 'causes');
  expect(performance.now() - began).toBeLessThan(20_000);
  expect(problemsOf(found)).toMatchObject([
    { name: 'nats', cause: expect.stringMatching(/the host is silent, or the server hangs/) },
  ]);
  const error = await whyNotReady(cluster, ({ engine }) => /hangs/.test(engine.cause ?? ''));
  expect(error.message).toMatch(/connecting: the server does not answer in time/);
  await server.kill('SIGCONT');
  await cluster.ready();
});

describe('doctor, called wrongly', () => {
  it.each([
    ['credentials on the command line', ['--servers', `nats://app:${SECRET}@127.0.0.1`]],
    ['a cluster without servers', ['--cluster', 'causes']],
    ['a cluster that cannot be one', ['--servers', '127.0.0.1', '--cluster', 'a.b']],
    ['an address that is not valid', ['--servers', 'http://127.0.0.1']],
  ])('with %s', async (_, args) => {
    const { status, stdout, stderr } = await doctor(args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(/^allstop: /m);
    expect(stderr).not.toContain(SECRET);
  });

  it('with CA_FILE that cannot be read', () => cannotRead('CA_FILE'));
  it.each(['CERT_FILE', 'KEY_FILE', 'PASS_FILE', 'TOKEN_FILE'])(
    'with %s that cannot be read',
    { tags: 'long' },
    cannotRead,
  );
  async function cannotRead(name: string): Promise<void> {
    const path = certificates.path('none.pem');
    const env = { [`ALLSTOP_NATS_${name}`]: path };
    const { status, stdout, stderr } = await doctor(['--servers', '127.0.0.1'], env);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(/^allstop: ALLSTOP_NATS_\w+ cannot be read: ENOENT/m);
    expect(stderr).toContain(`ALLSTOP_NATS_${name}`);
    expect(stderr).toContain(path);
  }

  it('with two ways to log in', async () => {
    const env = { ALLSTOP_NATS_USER: 'app', ALLSTOP_NATS_TOKEN: SECRET };
    const { status, stderr } = await doctor(['--servers', '127.0.0.1'], env);
    expect(status).toBe(2);
    expect(stderr).not.toContain(SECRET);
  });
});
