/** Options that NatsStrategy refuses. Nothing is connected. */
import { ClusterSpec } from 'allstop/cluster';
import { NatsStrategy, type NatsStrategyOptions } from 'allstop/nats';
import { describe, expect, it } from 'vitest';

const module = new URL('file:///tasks.mjs');
const make = (options: object): NatsStrategy =>
  new NatsStrategy({ module, servers: 'h', cluster: 'c', ...options } as NatsStrategyOptions);

describe('a NatsStrategy', () => {
  it.each([
    { servers: 4222 },
    { servers: [4222] },
    { cluster: 1 },
    { module: 'tasks.mjs' },
    { expect: { worker: ['h'] } },
    { minWorkers: '1' },
    { unavailableAfterMs: '1' },
    { lostAfterMs: '1' },
    { definition: 1 },
    { replicas: null },
    { tls: 'yes' },
    { tls: [] },
    { tls: { caFile: 1 } },
    { tls: { handshakeFirst: 'yes' } },
    { jetstream: null },
    { jetstream: '' },
    { user: 1 },
    { token: null },
  ])('of another type: %j', (options) => {
    expect(() => make(options)).toThrow(
      expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' }),
    );
  });

  it.each([
    { minWorkers: -1 },
    { minWorkers: Number.NaN },
    { unavailableAfterMs: -1 },
    { unavailableAfterMs: Number.NaN },
    { lostAfterMs: -1 },
    { lostAfterMs: Number.NaN },
    { replicas: 0 },
    { expect: new ClusterSpec({ worker: ['h'] }), minWorkers: 2 },
  ])('out of range: %j', (options) => {
    expect(() => make(options)).toThrow(
      expect.objectContaining({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' }),
    );
  });

  it('does not tell what a password was, whatever it was', () => {
    expect(() => make({ user: 'u', pass: 12_345 })).toThrow(
      'The "options.pass" property must be of type string. Received a value of type number',
    );
  });

  it.each([
    { servers: '' },
    { definition: '' },
    { definition: 'a b' },
    { definition: 'a\u001b' },
    { servers: [] },
    { servers: 'h,' },
    { servers: 'http://h' },
    { servers: 'h:99999' },
    { servers: 'nats://h/path' },
    { servers: 'nats://100%:pass@h' },
    { servers: 'nats://user:100%@h' },
    { cluster: '' },
    { cluster: 'a.b' },
    { pass: 'alone' },
    { user: 'u', token: 't' },
    { servers: 'nats://u:p@h', user: 'u', pass: 'p' },
    { servers: 'nats://u:p@h', user: 'v' },
    { servers: 'nats://u:p@h', pass: 'q' },
    { servers: 'nats://u:p@h', token: 't' },
    { servers: 'nats://t@h', token: 't' },
    { servers: ['h', 'nats://t@i'], creds: 'c' },
    { servers: 'nats://u:p@h', nkey: 'SU' },
  ])('of what cannot be: %j', (options) => {
    expect(() => make(options)).toThrow(
      expect.objectContaining({ code: 'ERR_ALLSTOP_INVALID_ARGUMENT' }),
    );
  });

  it('says that one of two ways to log in is in an address', () => {
    expect(() => make({ servers: 'nats://u:hidden@h', token: 'secret' })).toThrow(
      'Only one of user, token, nkey and creds can be given, and an address contains one already',
    );
  });
});
