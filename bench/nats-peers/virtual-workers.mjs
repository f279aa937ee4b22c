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
/** Of PROTOCOL in lib/nats/wire/control-messages.ts, whose number nodes have to speak. */
const PROTOCOL = 7;
/** Of a frame: reliable-channel.ts says what is in it. */
const HEADER = 18;
const KIND = { data: 1, ack: 2, answer: 3, ask: 4 };
const WINDOW_BYTES = 2 ** 20;
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
    protocol: PROTOCOL,
    node,
    job: 'worker',
    slots: 1,
    definition,
    host: hostname(),
    addresses: [],
    pid: process.pid,
    version: 'virtual',
    runtime: 'node virtual',
    freeMemory: 2 ** 34,
    cores: 1,
  });
  const hello = () => nats.publish(`${prefix}.hello`, json({ kind: 'hello', info: info() }));
  const frame = (kind, payload = Buffer.alloc(0), detail = 0, seq = 0) => {
    const bytes = Buffer.alloc(HEADER + payload.length);
    bytes[0] = kind;
    bytes[1] = detail;
    bytes.writeUIntBE(kind === KIND.data ? ++sent : seq, 2, 6);
    bytes.writeUIntBE(taken, 8, 6);
    bytes.writeUInt32BE(WINDOW_BYTES, 14);
    bytes.set(payload, HEADER);
    nats.publish(`${prefix}.up.${session}`, bytes);
  };
  const post = (message) => frame(KIND.data, serialize(message));
  const onMessage = (message) => {
    if (message.kind !== 'run') {
      frame(KIND.ack);
      return;
    }
    const results = message.calls.map(({ id, bytes }) => {
      const [a, b] = unpack(bytes);
      return { id, state: 'ready', bytes: pack(a + b), us: 1 };
    });
    post({ kind: 'results', results });
  };
  // Coordinators also say there, again and again, that they live.
  nats.subscribe(`${prefix}.who`, {
    callback(_, message) {
      if (message.json().kind === 'who') hello();
    },
  });
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
          if (bytes.length === 0) return;
          const seq = bytes.readUIntBE(2, 6);
          if (bytes[0] === KIND.ask) frame(KIND.answer, undefined, bytes[1], seq);
          if (bytes[0] !== KIND.data || seq !== taken + 1) return;
          taken += 1;
          onMessage(deserialize(bytes.subarray(HEADER)));
        },
      });
      const status = { phase: 'ready', capacity: 1, functions: ['add'], restarts: 0, stuck: 0 };
      post({ kind: 'status', status });
    },
  });
  hello();
}

for (let index = 0; index < Number(count); index++) virtualWorker();
await nats.flush();
process.stdout.write('ready\n');
