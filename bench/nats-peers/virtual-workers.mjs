/**
 * node virtual-workers.mjs SERVERS CLUSTER COUNT MODULE
 *
 * Many workers in one process. Each speaks the protocol of lib/nats/, but has no threads
 * and sends each result at once. Shows how much load a coordinator and a server can carry; says
 * nothing about real workers.
 */

import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { Deserializer, deserialize, Serializer, serialize } from 'node:v8';
import { connect } from '@nats-io/transport-node';

const [, , servers, cluster, count, module] = process.argv;
const HEADER = 14;
const nats = await connect({ servers });
const definition = createHash('sha256').update(readFileSync(module)).digest('hex');
const prefix = `allstop.${cluster}`;
const json = (value) => Buffer.from(JSON.stringify(value));

function pack(value) {
  const serializer = new Serializer();
  serializer.writeHeader();
  serializer.writeValue(value);
  return serializer.releaseBuffer();
}

function unpack(bytes) {
  const deserializer = new Deserializer(bytes);
  deserializer.readHeader();
  return deserializer.readValue();
}

function virtualWorker() {
  const node = randomUUID();
  let session = null;
  let token = 0;
  let sent = 0;
  let taken = 0;
  const info = () => ({
    protocol: 1,
    node,
    job: 'worker',
    slots: 1,
    definition,
    host: hostname(),
    addresses: [],
    pid: process.pid,
    version: 'virtual',
    runtime: 'virtual',
    freeMemory: 2 ** 34,
    cores: 1,
  });
  const hello = () => nats.publish(`${prefix}.hello`, json({ kind: 'hello', info: info() }));
  const frame = (kind, payload = Buffer.alloc(0)) => {
    const bytes = Buffer.alloc(HEADER + payload.length);
    bytes[0] = kind;
    bytes.writeUIntBE(kind === 1 ? ++sent : 0, 2, 6);
    bytes.writeUIntBE(taken, 8, 6);
    bytes.set(payload, HEADER);
    nats.publish(`${prefix}.up.${session}`, bytes);
  };
  const post = (message) => frame(1, serialize(message));
  const onMessage = (message) => {
    if (message[0] !== 'run') {
      frame(2);
      return;
    }
    const results = [];
    for (let at = 1; at < message.length; at += 5) {
      const [a, b] = unpack(message[at + 3]);
      results.push(message[at], 0, pack(a + b), 1);
    }
    post(['results', ...results]);
  };
  nats.subscribe(`${prefix}.who`, { callback: hello });
  nats.subscribe(`${prefix}.node.${node}`, {
    callback(_, message) {
      const control = message.json();
      token = Math.max(token, control.token);
      if (control.kind === 'probe') message.respond(json({ session, token }));
      if (control.kind !== 'welcome' || control.session === session) return;
      session = control.session;
      nats.subscribe(`${prefix}.down.${session}`, {
        callback(_error, { data }) {
          const bytes = Buffer.from(data);
          if (bytes.length === 0 || bytes[0] !== 1 || bytes.readUIntBE(2, 6) !== taken + 1) return;
          taken += 1;
          onMessage(deserialize(bytes.subarray(HEADER)));
        },
      });
      post(['status', { phase: 'ready', capacity: 1, functions: ['add'], restarts: 0, stuck: 0 }]);
    },
  });
  hello();
}

for (let index = 0; index < Number(count); index++) virtualWorker();
await nats.flush();
process.stdout.write('ready\n');
