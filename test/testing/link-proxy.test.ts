/** LinkProxy: a link that is slow, stands still, is cut and comes back. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { FailedPreconditionError, LinkProxy, type LinkProxyOptions } from 'allstop/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { warningsDuring } from '../support/warnings.ts';

let server: Server;
let to: string;
const accepted: Socket[] = [];
const opened: (LinkProxy | Socket)[] = [];

beforeEach(async () => {
  // A server that sends back what it gets.
  server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket);
    socket.on('error', () => {});
    socket.pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  to = `nats://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  vi.useRealTimers();
  for (const each of opened.splice(0)) {
    if (each instanceof LinkProxy) await each[Symbol.asyncDispose]();
    else each.destroy();
  }
  for (const socket of accepted.splice(0)) socket.destroy();
  server.close();
});

async function open(options: Partial<LinkProxyOptions> = {}): Promise<LinkProxy> {
  const proxy = await LinkProxy.open({ to, ...options });
  opened.push(proxy);
  return proxy;
}

async function client(proxy: LinkProxy): Promise<Socket> {
  const { hostname, port } = new URL(proxy.url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  socket.on('error', () => {});
  opened.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** Resolves when the socket is closed, by a reset or in order. */
const closing = (socket: Socket): Promise<unknown> =>
  new Promise((resolve) => socket.once('close', resolve));

/** Resolves when the socket has received this number of bytes. */
async function received(socket: Socket, count: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let length = 0; length < count; ) {
    const [data] = (await once(socket, 'data')) as [Buffer];
    parts.push(data);
    length += data.length;
  }
  return Buffer.concat(parts);
}

describe('a link', () => {
  it('carries all bytes both ways, in order, and the ends of both sides', async () => {
    const proxy = await open();
    const socket = await client(proxy);
    const bytes = Buffer.from(Uint8Array.from({ length: 3_000_000 }, (_, at) => at % 251));
    const back = received(socket, bytes.length);
    const ended = once(socket, 'end');
    socket.end(bytes);
    expect((await back).equals(bytes)).toBe(true);
    await ended;
    await once(socket, 'close');
  });

  it('takes its time for bytes', async () => {
    const proxy = await open({ bytesPerSecond: 100_000 });
    const socket = await client(proxy);
    const began = performance.now();
    socket.write(Buffer.alloc(20_000));
    await received(socket, 20_000);
    expect(performance.now() - began).toBeGreaterThan(180);
    proxy.setRate(Number.POSITIVE_INFINITY);
    socket.write(Buffer.alloc(10_000_000));
    await received(socket, 10_000_000);
  });

  it('delays bytes, each way', async () => {
    const proxy = await open({ latencyMs: 40 });
    const socket = await client(proxy);
    const began = performance.now();
    socket.write('x');
    await received(socket, 1);
    expect(performance.now() - began).toBeGreaterThanOrEqual(79);
    proxy.setLatency(0);
    socket.write('y');
    expect(String(await received(socket, 1))).toBe('y');
  });

  it('that stalls keeps connections and bytes, and lets them go when it is restored', async () => {
    const proxy = await open();
    const socket = await client(proxy);
    socket.write('a');
    await received(socket, 1);
    proxy.stall();
    let isThere = false;
    const back = received(socket, 3).then((bytes) => {
      isThere = true;
      return bytes;
    });
    socket.write('bcd');
    // A connection past the proxy makes a round trip meanwhile; so does one to the proxy.
    const direct = connect(Number(new URL(to).port), '127.0.0.1');
    opened.push(direct);
    direct.write('z');
    await received(direct, 1);
    const late = await client(proxy);
    late.write('e');
    expect(isThere).toBe(false);
    expect(proxy.connections).toBe(2);
    proxy.restore();
    expect(String(await back)).toBe('bcd');
    expect(String(await received(late, 1))).toBe('e');
  });

  it.each(['client', 'server'])(
    'that stalls keeps a reset of the %s until it is restored',
    async (who) => {
      const proxy = await open();
      const socket = await client(proxy);
      socket.write('x');
      await received(socket, 1);
      const [far] = accepted as [Socket];
      const [gone, other] = who === 'client' ? [socket, far] : [far, socket];
      proxy.stall();
      const closed = closing(gone);
      gone.resetAndDestroy();
      await closed;
      for (let turns = 0; turns < 3; turns++) await new Promise(setImmediate); // the proxy hears of it
      expect([proxy.connections, other.destroyed]).toEqual([1, false]);
      proxy.restore();
      await closing(other);
      expect(proxy.connections).toBe(0);
    },
  );

  it('that takes years for a byte waits, and carries the rest at another rate', async () => {
    const connected = once(server, 'connection');
    const proxy = await open({ bytesPerSecond: 1e-7 });
    const socket = await client(proxy);
    const [far] = (await connected) as [Socket];
    const warnings = await warningsDuring(async () => {
      const arrived = once(far, 'data');
      socket.write('ab');
      await arrived; // the first byte
    });
    expect(warnings).toEqual([]); // of a timer that is too long, and fires at once
    proxy.setRate(Number.POSITIVE_INFINITY);
    await received(socket, 2);
  });

  it('that is cut resets connections, new ones too, until it is restored', async () => {
    const proxy = await open();
    const { url } = proxy;
    const socket = await client(proxy);
    const closed = closing(socket);
    proxy.cut();
    proxy.cut();
    await closed;
    expect(proxy.connections).toBe(0);
    const next = connect(Number(new URL(url).port), '127.0.0.1');
    next.on('error', () => {});
    await closing(next);
    proxy.restore();
    expect(proxy.url).toBe(url);
    const last = await client(proxy);
    last.write('x');
    await received(last, 1);
  });

  it('to a server that does not run resets connections, and works when it runs', async () => {
    const { port } = server.address() as AddressInfo;
    const proxy = await open();
    server.close();
    await once(server, 'close');
    const early = connect(Number(new URL(proxy.url).port), '127.0.0.1');
    early.on('error', () => {});
    await closing(early);
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    const socket = await client(proxy);
    socket.write('x');
    await received(socket, 1);
  });

  it('is not held up by fake timers', async () => {
    vi.useFakeTimers();
    const proxy = await open({ latencyMs: 5 });
    const socket = await client(proxy);
    socket.write('x');
    await received(socket, 1);
  });
});

describe('a proxy', () => {
  it('has the scheme, user and password of the server in its url', async () => {
    const proxy = await open({ to: to.replace('nats://', 'tls://me:secret@') });
    expect(proxy.url).toMatch(/^tls:\/\/me:secret@127\.0\.0\.1:\d+$/);
    expect((await open({ to: 'localhost' })).url).toMatch(/^127\.0\.0\.1:\d+$/);
    expect((await open({ to: 'nats://[::1]:4333' })).url).toMatch(/^nats:\/\/127\.0\.0\.1:\d+$/);
  });

  it('is gone when it is disposed of, also twice, with its connections', async () => {
    const proxy = await open({ bytesPerSecond: 1 });
    const socket = await client(proxy);
    const closed = closing(socket);
    socket.write('many bytes');
    const { url } = proxy;
    await Promise.all([proxy[Symbol.asyncDispose](), proxy[Symbol.asyncDispose](), closed]);
    await proxy[Symbol.asyncDispose]();
    for (const call of [() => proxy.url, () => proxy.stall(), () => proxy.setRate(1)]) {
      expect(call).toThrow(FailedPreconditionError);
    }
    const late = connect(Number(new URL(url).port), '127.0.0.1');
    const [error] = await once(late, 'error');
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('refuses wrong arguments', async () => {
    const type = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };
    const range = { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' };
    const argument = { code: 'ERR_ALLSTOP_INVALID_ARGUMENT' };
    const refusals: [unknown, object][] = [
      [undefined, type],
      ['nats://x', type],
      [{}, type],
      [{ to: 5 }, type],
      [{ to: '' }, argument],
      [{ to: 'nats://a:1,nats://b:1' }, argument],
      [{ to: 'nats://u:pw@:70000' }, argument],
      [{ to: 'host:70000' }, argument],
      [
        { to, rate: 5 },
        { name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' },
      ],
      [{ to, bytesPerSecond: 0 }, range],
      [{ to, bytesPerSecond: '5' }, type],
      [{ to, latencyMs: -1 }, range],
    ];
    for (const [options, error] of refusals) {
      await expect(LinkProxy.open(options as LinkProxyOptions)).rejects.toMatchObject(error);
    }
    const refused = LinkProxy.open({ to: 'nats://u:pw@:70000' });
    await expect(refused).rejects.not.toThrow('pw');
    const proxy = await open();
    expect(() => proxy.setRate(Number.NaN)).toThrow(expect.objectContaining(range));
    expect(() => proxy.setLatency(-1)).toThrow(expect.objectContaining(range));
  });
});
