// @module-tag nats
// Malformed and forged messages from another client of the same server: they are dropped and
// counted, the first causes a warning, and the cluster goes on.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { serialize } from 'node:v8';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { ClusterCoordinator } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { afterAll, afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { diagnose, doctor } from '../../support/nats-doctor.ts';
import { NatsServer } from '../../support/nats-server.ts';
import { NatsWorker } from '../../support/nats-worker.ts';

const module = new URL('../../fixtures/cluster-nats-tasks.mjs', import.meta.url);
const CODE = 'ALLSTOP_MALFORMED_MESSAGE';

let server: NatsServer | undefined;
let cluster: ClusterCoordinator;
/** It serves the coordinators of several tests, one after the other. */
let worker: NatsWorker;
let stranger: NatsConnection;
let warnings: string[];
/** Names that the stranger has overheard in a welcome. */
let node: string;
let session: string;
let run: string;

const onWarning = (warning: Error & { code?: string }): void => {
  if (warning.code === CODE) warnings.push(warning.message);
};

beforeEach(async () => {
  warnings = [];
  process.on('warning', onWarning);
  const isNew = server === undefined;
  server ??= await NatsServer.start();
  const servers = server.address;
  stranger = await connect({ servers });
  const heard = new Promise<Record<string, string>>((resolve) => {
    const subscription = stranger.subscribe('allstop.c.node.*', {
      callback: (_, { subject, data }) => {
        const { kind, ...rest } = JSON.parse(Buffer.from(data).toString()) as Record<
          string,
          string
        >;
        if (kind !== 'welcome') return;
        subscription.unsubscribe();
        resolve({ ...rest, node: subject.split('.').at(-1) as string });
      },
    });
  });
  await stranger.flush();
  cluster = new ClusterCoordinator(new NatsStrategy({ module, servers, cluster: 'c' }));
  if (isNew) worker = new NatsWorker({ module, servers, cluster: 'c', slots: 2 });
  await cluster.ready();
  ({ node, session, run } = (await heard) as { node: string; session: string; run: string });
});

afterEach(async () => {
  process.off('warning', onWarning);
  await cluster.close();
  await stranger.close();
});

async function endNode(): Promise<void> {
  await worker.kill();
  await server?.close();
  server = undefined;
}
afterAll(endNode);

const addressOf = (): string => (server as NatsServer).address;

/** The numbers 0 to 99, squared. */
async function works(): Promise<void> {
  const numbers = Array.from({ length: 100 }, (_, at) => at);
  const values = await Promise.all(numbers.map((n) => cluster.schedule('square', [n])));
  expect(await cluster.fetch(values)).toEqual(numbers.map((n) => n * n));
}

/** How many malformed messages `check` of a doctor says were dropped. */
async function droppedBy(check: 'coordinator' | 'task'): Promise<number> {
  const found = await diagnose(addressOf(), 'c');
  expect(found).toMatchObject({ status: 0, ok: true });
  const { detail } = found.checks.find(({ name }) => name === check) ?? {};
  return Number(/(\d+) malformed messages dropped/.exec(detail ?? '')?.[1]);
}

const text = (value: unknown): Uint8Array =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

const info = {
  protocol: 7,
  node: 'n',
  job: 'worker',
  slots: 1,
  definition: 'd',
  host: 'h',
  addresses: [],
  pid: 1,
  version: '1',
  runtime: 'r',
  freeMemory: 1,
  cores: 1,
};

/** Sparse: a few bytes that claim to be four billion elements. */
function holes(): object {
  const results: unknown[] = [];
  results.length = 2 ** 32 - 1;
  return { kind: 'results', results };
}

const requester = { language: 'js', via: 'x', threadName: 't', threadId: 0, pid: 1 };
const stop = serialize({ id: 'i', at: 0, error: null, requester });
const stopsWithNoError = ['', 'ASE\u0001', 'ASX\u0001', 'ASE\u0001\u0001\u00ff'].map((error) =>
  serialize({ id: 'i', at: 0, error: Buffer.from(error, 'latin1'), requester }),
);

const NONSENSE: Uint8Array[] = [
  ...['', 'nonsense', 'null', '[]', '"who"', '{}', '{"kind":"constructor"}', '{"kind":7}'].map(
    text,
  ),
  text('['.repeat(50_000)),
  text('{"__proto__":{"isPolluted":true}}'),
  Buffer.from([0xff, 0x0f, 0x00, 0xfe, 0x80]),
  Buffer.alloc(64 * 1024, 0xa5),
  serialize({ isPolluted: true }),
  serialize(holes()),
  ...stopsWithNoError,
  ...Array.from({ length: stop.length - 1 }, (_, length) => stop.subarray(0, length)),
];

const HELLOS = [
  { kind: 'hello' },
  { kind: 'hello', info: null },
  ...[
    { protocol: '1' },
    { task: 1_000_001 },
    { host: 'x'.repeat(500_000) },
    { addresses: Array(1_001).fill('a') },
    { protocol: 1e308 },
    { node: '*' },
    { node: 'a.b' },
    { node: '__proto__.x' },
    { job: 'chief' },
    { job: '__proto__' },
    { task: -1 },
    { task: 2 ** 60 },
    { slots: 1.5 },
    { slots: null },
    { pid: '1' },
    { host: { toString: 'h' } },
    { addresses: 'localhost' },
    { addresses: [1] },
    { session: 'a b' },
    { freeMemory: -1 },
  ].map((wrong) => ({ kind: 'hello', info: { ...info, ...wrong } })),
].map(text);

// First: what its node has dropped is counted.
describe('to a worker', () => {
  const wrongWelcomes = [
    { session: 'a.b' },
    { task: -1 },
    { task: 1e300 },
    { cancelGraceMs: 'never' },
    { cancelGraceMs: -5 },
    { token: 2 ** 60 },
    { run: '>' },
  ];

  it('on each of its subjects', async () => {
    const bySubject: [string, Uint8Array[]][] = [
      [
        `node.${node}`,
        [
          ...NONSENSE,
          ...wrongWelcomes.map((wrong) =>
            text({ kind: 'welcome', run: 'r', token: 1, session: 's', task: 0, ...wrong }),
          ),
          text({ kind: 'refused', run: 'r', token: 1, phase: 1, why: 'w' }),
          text({ kind: 'probe', run: 'r', token: 1 }),
        ],
      ],
      ['who', NONSENSE],
      // An empty frame would end the session.
      [`down.${session}`, NONSENSE.filter(({ length }) => length > 0)],
      [`stop.${run}`, NONSENSE],
    ];
    for (const [subject, payloads] of bySubject) {
      for (const payload of payloads) stranger.publish(`allstop.c.${subject}`, payload);
      await stranger.flush();
      await works();
    }
    expect(await droppedBy('task')).toBe(bySubject.flatMap(([, payloads]) => payloads).length);
    expect(worker.output.filter((line) => line.includes(CODE))).toHaveLength(1);
    expect(worker.events.map(({ event }) => event)).not.toContain('session-over');
  });

  it('the end of its session, forged: it is in the next one', async () => {
    const again = worker.next('session');
    stranger.publish(`allstop.c.down.${session}`);
    await again;
    await works();
  });
});

describe('to the coordinator', () => {
  it('on each of its subjects', async () => {
    const bySubject: [string, Uint8Array[]][] = [
      ['hello', [...NONSENSE, ...HELLOS]],
      [`up.${session}`, NONSENSE],
      [`stop.${run}`, NONSENSE],
      [
        'who',
        [...NONSENSE, text({ kind: 'who', run, token: 2 ** 60 }), text({ kind: 'who', token: 1 })],
      ],
    ];
    let sent = 0;
    for (const [subject, payloads] of bySubject) {
      for (const payload of payloads) stranger.publish(`allstop.c.${subject}`, payload);
      await stranger.flush();
      await works();
      sent += payloads.length;
      expect(cluster.stats().engine['malformedMessages'], subject).toBe(sent);
    }
    expect(cluster.coordinator.shouldStop()).toBe(false);
    expect(await droppedBy('coordinator')).toBe(sent);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^The coordinator of cluster 'c' dropped a malformed message \(a .*--cluster c` shows how many$/,
      ),
    ]);
    expect(({} as { isPolluted?: boolean }).isPolluted).toBeUndefined();
  });

  it('a run that says it is newer, and is not', async () => {
    onTestFinished(endNode); // it has heard of that run
    for (const token of [Number.MAX_SAFE_INTEGER, Date.now() + 60_000]) {
      stranger.publish('allstop.c.who', text({ kind: 'who', run: 'forged', token }));
      await stranger.flush();
      await works();
      expect((await diagnose(addressOf(), 'c')).status).toBe(0);
    }
  });

  it('an answer to a probe that names a newer run, or is malformed', { tags: 'long' }, async () => {
    onTestFinished(endNode);
    const forged = ['nonsense', '{"session":5,"token":1}', '{"session":null,"token":-1}'].map(text);
    forged.push(text({ session, token: Number.MAX_SAFE_INTEGER }));
    // The worker is stopped, so that the stranger replies first.
    worker.child.kill('SIGSTOP');
    await new Promise<void>((resolve) => {
      stranger.subscribe(`allstop.c.node.${node}`, {
        callback: (_, message) => {
          message.respond(forged.shift());
          if (forged.length === 0) resolve();
        },
      });
    });
    worker.child.kill('SIGCONT');
    await works();
    expect(warnings).toEqual([expect.stringContaining('(a reply to a probe)')]);
  });
});

it('to a doctor: malformed messages are left out, and escape sequences are taken out', async () => {
  const host = 'h\u001B[2J\nok';
  const answers = [...NONSENSE, ...HELLOS, text({ kind: 'hello', info: { ...info, host } })];
  for (const subject of ['allstop.c.who', 'allstop.c.report']) {
    stranger.subscribe(subject, {
      callback: (_, message) => {
        if (message.reply === undefined || message.reply === '') return;
        for (const answer of answers) message.respond(answer);
      },
    });
  }
  await stranger.flush();
  const printed = await doctor(['--servers', addressOf(), '--cluster', 'c']);
  expect(printed).toMatchObject({ status: 0 });
  const { stdout } = printed;
  expect(stdout.match(/^node .*/gm)).toEqual([expect.stringMatching(/^node +h \[2J ok \(pid 1\)/)]);
  expect(stdout).not.toContain('\u001B');
});

it('a node whose words are not printable is refused, and shown without what is not', async () => {
  const hello = text({ kind: 'hello', info: { ...info, host: 'h\u001B[2J\nallstop: fine' } });
  stranger.subscribe('allstop.c.who', {
    callback: (_, message) => {
      if (message.reply !== undefined && message.reply !== '') message.respond(hello);
    },
  });
  const say = (): void => stranger.publish('allstop.c.hello', hello);
  say();
  // A refused node repeats it; one that is silent for 5 s is forgotten, and a doctor may take longer.
  const repeated = setInterval(say, 1_000);
  try {
    await stranger.flush();
    await works();
    expect(cluster.workers).toHaveLength(1);
    const { stdout } = await doctor(['--servers', addressOf(), '--cluster', 'c']);
    const words = stdout.replaceAll(/\s+/g, ' '); // the table wraps its lines
    expect(words).toMatch(/ node (?:.* )?h \[2J allstop: fine/);
    expect(words).toMatch(/refused for .*: unprintable/);
    expect(stdout).not.toContain('\u001B');
  } finally {
    clearInterval(repeated);
  }
});

it('nodes that say hello and never answer leave nothing', async () => {
  const definition = createHash('sha256').update(readFileSync(module)).digest('hex');
  const right = { ...info, definition, freeMemory: 2 ** 40, runtime: 'node 20.0.0' };
  for (let n = 0; n < 400; n += 1) {
    const forged = { ...right, node: `forged-${n}`, task: n + 10 };
    stranger.publish('allstop.c.hello', text({ kind: 'hello', info: forged }));
  }
  await stranger.flush();
  await works();
  const nodes = (): number => cluster.stats().engine['nodes'] as number;
  expect(nodes()).toBeLessThanOrEqual(257);
  await eventually(() => nodes() === 1);
  expect(cluster.workers).toHaveLength(1);
});

it('nodes that are turned away leave nothing, and a report of them is not too long', {
  tags: 'long',
}, async () => {
  onTestFinished(endNode);
  await server?.kill();
  server?.reconfigure('max_payload: 64KB');
  await server?.restart();
  await works();
  await stranger.close();
  stranger = await connect({ servers: addressOf() });
  const others = Array.from({ length: 300 }, (_, task) => ({
    ...info,
    node: `n${task}`,
    host: `h${task}-${'x'.repeat(200)}`,
    task: 1_000 + task,
  }));
  for (const other of others) {
    stranger.publish('allstop.c.hello', text({ kind: 'hello', info: other }));
  }
  await stranger.flush();
  const found = await diagnose(addressOf(), 'c');
  expect(found.checks.find(({ name }) => name === 'coordinator')).toMatchObject({ ok: true });
  expect(found.report?.tasks).toHaveLength(1);
  expect(cluster.workers).toHaveLength(1);
  await works();
  expect(cluster.stats().engine).toMatchObject({ connections: 2 }); // it has not reconnected again
});

describe('in the place of a true message of a session', () => {
  const HEADER = 18;
  /** A data frame with the number `seq`. */
  function frameOf(seq: number, payload: Uint8Array): Buffer {
    const header = Buffer.alloc(HEADER);
    header[0] = 1;
    header.writeUIntBE(seq, 2, 6);
    return Buffer.concat([header, payload]);
  }

  const result = { id: 1, state: 'ready', bytes: Buffer.from('x'), us: 1 };
  const message = serialize({ kind: 'results', results: [result] });
  const payloads: [string, Uint8Array][] = [
    ['truncated', message.subarray(0, message.length - 4)],
    ['of another shape', serialize({ kind: 'results', results: [{ ...result, id: 'one' }] })],
    ['of no known kind', serialize({ kind: 'constructor', id: 1 })],
    ['made of holes', serialize(holes())],
    [
      'with an error that cannot be read',
      serialize({ kind: 'failed', cause: Buffer.from('ASE\u0001\u0001\u00ff') }),
    ],
  ];

  it.each(payloads)(
    '%s: what it took the place of is not lost',
    { tags: 'long' },
    async (_, payload) => {
      const lastOf = (subject: string): { seq: number } => {
        const last = { seq: 0 };
        stranger.subscribe(subject, {
          callback: (__, { data }) => {
            if (data[0] === 1) last.seq = Math.max(last.seq, Buffer.from(data).readUIntBE(2, 6));
          },
        });
        return last;
      };
      const up = lastOf(`allstop.c.up.${session}`);
      await stranger.flush();
      await works(); // so that the stranger overhears a frame and its number
      await stranger.flush();
      expect(up.seq).toBeGreaterThan(0);
      const running = await cluster.schedule('later', [50, 'done']);
      const again = worker.next('session');
      stranger.publish(`allstop.c.up.${session}`, frameOf(up.seq + 1, payload));
      await again;
      expect(await running.fetch()).toBe('done');
      await works();
      expect(warnings).toEqual([expect.stringContaining('(a message of a session)')]);
    },
  );

  it('a copy of the last, with the next number: it is given up', { tags: 'long' }, async () => {
    let last: Buffer | undefined;
    stranger.subscribe(`allstop.c.up.${session}`, {
      callback: (__, { data }) => {
        if (data[0] === 1) last = Buffer.from(data);
      },
    });
    await stranger.flush();
    await works();
    await stranger.flush();
    const copy = last as Buffer;
    copy.writeUIntBE(copy.readUIntBE(2, 6) + 1, 2, 6);
    const again = worker.next('session');
    stranger.publish(`allstop.c.up.${session}`, copy);
    await again;
    await works();
  });

  it('to a worker: it asks for another session', async () => {
    const down = { seq: 0 };
    stranger.subscribe(`allstop.c.down.${session}`, {
      callback: (_, { data }) => {
        if (data[0] === 1) down.seq = Math.max(down.seq, Buffer.from(data).readUIntBE(2, 6));
      },
    });
    await stranger.flush();
    await works();
    await stranger.flush();
    const again = worker.next('session');
    stranger.publish(
      `allstop.c.down.${session}`,
      frameOf(
        down.seq + 1,
        serialize({ kind: 'cancel', id: 1, reason: Buffer.from('garbage'), replace: false }),
      ),
    );
    await again;
    await works();
  });
});
