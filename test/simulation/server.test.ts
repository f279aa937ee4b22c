/** The simulated NATS server answers the official client as a nats-server does. */

import assert from 'node:assert/strict';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { type KV, Kvm } from '@nats-io/kv';
import { Objm } from '@nats-io/obj';
import {
  type ConnectionOptions,
  connect,
  headers,
  type NatsConnection,
} from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { freePort, NatsServer } from '../support/nats-server.ts';
import { JetStream } from './jetstream.mjs';
import { Network, useNetwork } from './network.mjs';
import { Server } from './server.mjs';

/** The time of this machine: what the client waits for here is real. */
const clock = {
  now: () => Date.now(),
  later: (ms: number, fn: () => void) => {
    const timer = setTimeout(fn, ms);
    return () => clearTimeout(timer);
  },
};

type Place = { readonly address: string; close(): Promise<void> };

const USERS = `authorization { users: [
  { user: all, password: all }
  { user: few, password: few, permissions: { publish: ["open.>", "$JS.API.INFO"], subscribe: ["open.>", "_INBOX.>"] } }
] }`;

const FEW = { publish: ['open.>', '$JS.API.INFO'], subscribe: ['open.>', '_INBOX.>'] };

function openSimulated(): Place {
  const network = new Network({ clock });
  const store = new JetStream({ clock });
  const login = ({ user, pass }: { user?: string; pass?: string }) => {
    if (user !== pass) return undefined;
    return user === 'few' ? FEW : user === 'all' ? {} : undefined;
  };
  const address = '10.0.0.1:4222';
  network.add(new Server({ clock, network, name: 's1', address, jetstream: store, login }));
  const restore = useNetwork(network);
  return { address, close: async () => restore() };
}

async function openReal(): Promise<Place> {
  const server = await NatsServer.start(USERS);
  return { address: server.address, close: () => server.close() };
}

/** What an error says to a program, without texts that have names of this run. */
function shown(error: unknown): unknown[] {
  const { name, message, code } = error as Error & { code?: unknown };
  return [name, message, code];
}

const failure = async (promise: Promise<unknown>): Promise<unknown[]> =>
  await promise.then(
    () => assert.fail('it did not fail'),
    (error: unknown) => shown(error),
  );

const text = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString();

const aServer = (open: () => Promise<Place>) => (): void => {
  let place: Place;
  const opened: NatsConnection[] = [];

  const join = async (options: ConnectionOptions = {}): Promise<NatsConnection> => {
    const nats = await connect({
      servers: place.address,
      user: 'all',
      pass: 'all',
      reconnect: false,
      ...options,
    });
    opened.push(nats);
    return nats;
  };

  beforeAll(async () => {
    place = await open();
  });

  afterAll(async () => {
    for (const nats of opened) await nats.close();
    await place.close();
  });

  test('carries messages with headers by subjects and wildcards', async () => {
    const [one, other] = [await join(), await join()];
    const got: unknown[] = [];
    for (const subject of ['a.b', 'a.*', 'a.>', 'a.*.c', 'x.>']) {
      one.subscribe(subject, {
        callback: (_error, message) => {
          got.push([subject, message.subject, message.headers?.get('k') ?? '', message.string()]);
        },
      });
    }
    await one.flush();
    const own = headers();
    own.set('k', 'v w');
    other.publish('a.b', 'first', { headers: own });
    other.publish('a.b.c', new Uint8Array(0));
    other.publish('a', 'nobody');
    await other.flush();
    await one.flush();
    const ordered = got.toSorted((a, b) => (String(a) < String(b) ? -1 : 1));
    assert.deepEqual(ordered, [
      ['a.*', 'a.b', 'v w', 'first'],
      ['a.*.c', 'a.b.c', '', ''],
      ['a.>', 'a.b', 'v w', 'first'],
      ['a.>', 'a.b.c', '', ''],
      ['a.b', 'a.b', 'v w', 'first'],
    ]);
  });

  test('keeps the order of messages, and ends a subscription after its last', async () => {
    const [one, other] = [await join(), await join()];
    const got: string[] = [];
    const subscription = one.subscribe('order', {
      callback: (_error, message) => void got.push(message.string()),
      max: 3,
    });
    await one.flush();
    for (let at = 0; at < 5; at += 1) other.publish('order', String(at));
    await other.flush();
    await subscription.closed;
    assert.deepEqual(got, ['0', '1', '2']);
  });

  test('gives a message to one of a queue group', async () => {
    const [one, other] = [await join(), await join()];
    let count = 0;
    const callback = (): void => void (count += 1);
    one.subscribe('work', { queue: 'q', callback });
    other.subscribe('work', { queue: 'q', callback });
    await Promise.all([one.flush(), other.flush()]);
    for (let at = 0; at < 10; at += 1) one.publish('work');
    await one.flush();
    await other.flush();
    await one.flush();
    assert.equal(count, 10);
  });

  test('answers requests, and tells at once when nobody listens', async () => {
    const [one, other] = [await join(), await join()];
    other.subscribe('double', {
      callback: (_error, message) => void message.respond(`${message.string()}${message.string()}`),
    });
    await other.flush();
    assert.equal((await one.request('double', 'ab')).string(), 'abab');
    const [name, , code] = await failure(one.request('nobody', 'x', { timeout: 60_000 }));
    assert.deepEqual([name, code], ['RequestError', undefined]);
    other.subscribe('mute', { callback: () => {} });
    await other.flush();
    assert.equal((await failure(one.request('mute', '', { timeout: 100 })))[0], 'TimeoutError');
  });

  test('refuses a wrong password, and what a user may not do', async () => {
    const wrong = connect({ servers: place.address, user: 'all', pass: 'no', reconnect: false });
    assert.equal((await failure(wrong))[0], 'AuthorizationError');
    const few = await join({ user: 'few', pass: 'few' });
    const refused: unknown[] = [];
    const watch = async (): Promise<void> => {
      for await (const status of few.status()) {
        if (status.type === 'error') refused.push(status.error.name, status.error.message);
      }
    };
    const watching = watch();
    few.publish('secret', '');
    few.subscribe('secret', { callback: () => {} });
    await few.flush();
    await few.close();
    await watching;
    assert.deepEqual(refused, [
      'PermissionViolationError',
      'Permissions Violation for Publish to "secret"',
      'PermissionViolationError',
      'Permissions Violation for Subscription to "secret"',
    ]);
  });

  test('says what it is', async () => {
    const { info } = await join();
    const {
      version,
      headers: hasHeaders,
      max_payload,
      jetstream: hasJetStream,
      cluster,
    } = info ?? {};
    assert.deepEqual(
      [version, hasHeaders, max_payload, hasJetStream, cluster],
      ['2.10.27', true, 1_048_576, true, undefined],
    );
  });

  describe('as a key-value store', () => {
    let kv: KV;
    let nats: NatsConnection;

    beforeAll(async () => {
      nats = await join();
      kv = await new Kvm(nats).create('bucket', { history: 2 });
    });

    const told = async (key: string): Promise<unknown> => {
      const entry = await kv.get(key);
      return entry && [entry.operation, entry.revision, entry.string(), entry.key];
    };

    test('keeps values with revisions, by compare and set', async () => {
      assert.equal(await told('k'), null);
      assert.equal(await kv.create('k', 'one'), 1);
      assert.deepEqual(await told('k'), ['PUT', 1, 'one', 'k']);
      const again = await failure(kv.create('k', 'two'));
      assert.deepEqual(again, ['JetStreamApiError', 'wrong last sequence: 1', 10071]);
      assert.equal(await kv.update('k', 'two', 1), 2);
      assert.deepEqual(await failure(kv.update('k', 'three', 1)), [
        'JetStreamApiError',
        'wrong last sequence: 2',
        10071,
      ]);
      assert.equal(await kv.put('k', 'three'), 3);
      const first = await kv.get('k', { revision: 2 });
      assert.equal(first?.string(), 'two');
      assert.equal(await kv.get('k', { revision: 1 }), null); // history: 2
      await kv.delete('k');
      assert.deepEqual(await told('k'), ['DEL', 4, '', 'k']);
      assert.equal(await kv.create('k', 'four'), 5);
      await kv.purge('k');
      assert.deepEqual(await told('k'), ['PURGE', 6, '', 'k']);
      assert.equal(await kv.get('k', { revision: 5 }), null);
    });

    test('lists keys and history, and tells of changes', async () => {
      const other = await new Kvm(nats).create('other', { history: 5 });
      await other.put('a', '1');
      await other.put('b.c', '2');
      await other.put('a', '3');
      const keys: string[] = [];
      for await (const key of await other.keys()) keys.push(key);
      assert.deepEqual(keys, ['b.c', 'a']);
      const history: unknown[] = [];
      for await (const { key, revision } of await other.history()) history.push([key, revision]);
      assert.deepEqual(history, [
        ['a', 1],
        ['b.c', 2],
        ['a', 3],
      ]);
      const seen: unknown[] = [];
      const watch = await other.watch();
      for await (const { key, operation, isUpdate } of watch) {
        seen.push([key, operation, isUpdate]);
        if (seen.length === 2) await other.delete('b.c');
        if (seen.length === 3) break;
      }
      assert.deepEqual(seen, [
        ['b.c', 'PUT', false],
        ['a', 'PUT', true],
        ['b.c', 'DEL', true],
      ]);
      const { values, history: most, replicas } = await other.status();
      assert.deepEqual([values, most, replicas], [4, 5, 1]);
      await other.destroy();
      assert.equal((await failure(other.status()))[1], 'stream not found');
    });

    test('forgets values that are too old, and refuses those for which it has no room', async () => {
      const short = await new Kvm(nats).create('short', { ttl: 1_000 });
      await short.put('k', 'v');
      assert.equal((await short.get('k'))?.string(), 'v');
      const end = Date.now() + 10_000;
      while ((await short.get('k')) !== null && Date.now() < end) {
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      assert.equal(await short.get('k'), null);
      const small = await new Kvm(nats).create('small', { max_bytes: 1_000 });
      await small.put('a', new Uint8Array(500));
      const [name, , code] = await failure(small.put('b', new Uint8Array(600)));
      assert.deepEqual([name, code], ['JetStreamApiError', 10077]);
    });

    test('names streams that are not there, and those that are other ones', async () => {
      const manager = await jetstreamManager(nats);
      assert.deepEqual(await failure(manager.streams.info('KV_none')), [
        'StreamNotFoundError',
        'stream not found',
        10059,
      ]);
      const unknown = await new Kvm(nats).open('none', { allow_direct: true });
      const [name] = await failure(unknown.get('k'));
      assert.equal(name, 'RequestError');
      const many = new Kvm(nats).create('many', { replicas: 3 });
      assert.equal((await failure(many))[2], 10074);
      await manager.streams.add({ name: 'plain', subjects: ['plain.>'] });
      const second = manager.streams.add({ name: 'plain', subjects: ['second.>'] });
      assert.equal((await failure(second))[2], 10058);
      const js = jetstream(nats);
      const { seq, stream } = await js.publish('plain.a', 'x');
      assert.deepEqual([seq, stream], [1, 'plain']);
      const wrong = js.publish('plain.a', 'x', { expect: { lastSequence: 7 } });
      assert.deepEqual((await failure(wrong)).slice(1), ['wrong last sequence: 1', 10071]);
      const foreign = js.publish('plain.a', 'x', { expect: { streamName: 'other' } });
      assert.equal((await failure(foreign))[2], 10060);
      const message = await manager.streams.getMessage('plain', { last_by_subj: 'plain.*' });
      assert.deepEqual([message?.seq, message?.subject, text(message?.data)], [1, 'plain.a', 'x']);
      assert.equal(await manager.streams.getMessage('plain', { seq: 9 }), null);
      await js.publish('plain.b', 'y');
      const { state } = await manager.streams.info('plain', { subjects_filter: '>' });
      assert.deepEqual(state.subjects, { 'plain.a': 1, 'plain.b': 1 });
      assert.equal((await manager.streams.purge('plain', { filter: 'plain.a' })).purged, 1);
      const after = await manager.streams.info('plain');
      assert.deepEqual(
        [after.state.messages, after.state.first_seq, after.state.last_seq],
        [1, 2, 2],
      );
      const names: string[] = [];
      for await (const each of manager.streams.names()) names.push(each);
      assert.ok(names.includes('plain'));
    });
  });

  test('keeps objects of several chunks', async () => {
    const nats = await join();
    const objects = await new Objm(nats).create('files');
    assert.equal(await objects.get('none'), null);
    assert.equal(await objects.info('none'), null);
    const bytes = Uint8Array.from({ length: 300_000 }, (_, at) => at % 251);
    await objects.putBlob({ name: 'large', options: { max_chunk_size: 100_000 } }, bytes);
    const { size, chunks, digest } = (await objects.info('large')) ?? {};
    assert.deepEqual([size, chunks, digest?.slice(0, 8)], [300_000, 3, 'SHA-256=']);
    assert.ok(Buffer.from((await objects.getBlob('large')) ?? []).equals(bytes));
    await objects.putBlob({ name: 'large' }, Uint8Array.of(1, 2));
    assert.deepEqual([...((await objects.getBlob('large')) ?? [])], [1, 2]);
    assert.deepEqual(
      (await objects.list()).map(({ name }) => name),
      ['large'],
    );
    await objects.delete('large');
    assert.equal(await objects.get('large'), null);
    const manager = await jetstreamManager(nats);
    const { state } = await manager.streams.info('OBJ_files', { subjects_filter: '$O.files.C.>' });
    assert.equal(Object.keys(state.subjects ?? {}).length, 0);
    assert.equal((await objects.status()).size > 0, true);
  });
};

describe(
  'a simulated server',
  aServer(async () => openSimulated()),
);
describe('a real server', { tags: ['nats'] }, aServer(openReal));

type Two = { hub: string; leaf: string; close(): Promise<void> };

/** A hub and a leaf of it, each with a JetStream of its own. */
function openTwoSimulated(): Two {
  const network = new Network({ clock });
  const [hub, leaf] = ['hub', 'leaf'].map((domain, at) => {
    const store = new JetStream({ clock, domain });
    const address = `10.0.0.${at + 1}:4222`;
    const server = new Server({ clock, network, name: domain, address, jetstream: store });
    network.add(server);
    return server;
  }) as [Server, Server];
  leaf.leafOf(hub);
  const restore = useNetwork(network);
  return { hub: hub.address, leaf: leaf.address, close: async () => restore() };
}

async function openTwoReal(): Promise<Two> {
  const port = await freePort();
  const listen = `server_name: hub\nleafnodes { listen: "127.0.0.1:${port}" }`;
  const hub = await NatsServer.start(listen, { jetstream: { domain: 'hub' } });
  const remote = `server_name: leaf\nleafnodes { remotes: [{ url: "nats-leaf://127.0.0.1:${port}" }] }`;
  const leaf = await NatsServer.start(remote, { jetstream: { domain: 'leaf' } });
  const close = async (): Promise<void> => void (await Promise.all([hub.close(), leaf.close()]));
  return { hub: hub.address, leaf: leaf.address, close };
}

const aLeaf = (open: () => Promise<Two>) => (): void => {
  test('carries messages and requests, and has a JetStream of its own', async () => {
    const two = await open();
    const [hub, leaf] = await Promise.all(
      [two.hub, two.leaf].map(async (servers) => await connect({ servers, reconnect: false })),
    );
    assert.ok(hub !== undefined && leaf !== undefined);
    hub.subscribe('double', {
      callback: (_error, message) => void message.respond(`${message.string()}${message.string()}`),
    });
    await hub.flush();
    // The leaf may have to connect, and to hear of the subscription.
    const asked = async (left: number): Promise<string> => {
      try {
        return (await leaf.request('double', 'ab')).string();
      } catch (error) {
        if (left === 0) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
        return await asked(left - 1);
      }
    };
    assert.equal(await asked(100), 'abab');
    const buckets = [
      await new Kvm(jetstream(leaf)).create('same'),
      await new Kvm(jetstream(leaf, { domain: 'hub' })).create('same'),
      await new Kvm(jetstream(hub)).create('same'),
    ];
    for (const [at, bucket] of buckets.entries()) await bucket.put('k', `value ${at}`);
    const values = await Promise.all(buckets.map(async (each) => (await each.get('k'))?.string()));
    assert.deepEqual(values, ['value 0', 'value 2', 'value 2']);
    await Promise.all([hub.close(), leaf.close()]);
    await two.close();
  });
};

describe(
  'a simulated leaf',
  aLeaf(async () => openTwoSimulated()),
);
describe('a real leaf', { tags: ['nats'] }, aLeaf(openTwoReal));
