/**
 * The JetStream of a simulated server, or of a cluster of them: streams with the limits, headers and
 * ordered push consumers that the official client's key-value and object stores use.
 *
 * 1. A stream is a log of operations. The leader adds to it, if it reaches a majority of the
 *    replicas then; each replica applies what it has heard of, and answers direct gets from that.
 * 2. A leader that has lost the majority is silent; the others elect one after a while (`elect`).
 *    Until then nobody listens at the subjects of the stream.
 */

import { Buffer } from 'node:buffer';

const NS = 1_000_000;
const EMPTY = Buffer.alloc(0);
const ELECTION_MS = 1_500;
const API = '$JS.API.';

/** Whether a subject, of which the tokens are split, matches a filter. */
export function matches(filter, subject) {
  if (filter === subject || filter === '>') return true;
  const wanted = filter.split('.');
  const tokens = subject.split('.');
  for (const [at, token] of wanted.entries()) {
    if (token === '>') return tokens.length > at;
    if (at >= tokens.length || (token !== '*' && token !== tokens[at])) return false;
  }
  return wanted.length === tokens.length;
}

/** The block of headers of a message. */
export function headerBlock(headers, status = '') {
  const lines = Object.entries(headers).map(([key, value]) => `${key}: ${value}\r\n`);
  return Buffer.from(`NATS/1.0${status === '' ? '' : ` ${status}`}\r\n${lines.join('')}\r\n`);
}

function parseHeaders(block) {
  const headers = new Map();
  for (const line of block.toString().split('\r\n').slice(1)) {
    const at = line.indexOf(':');
    if (at > 0) headers.set(line.slice(0, at).trim(), line.slice(at + 1).trim());
  }
  return headers;
}

const apiError = (code, errCode, description) => ({
  error: { code, err_code: errCode, description },
});
const NO_STREAM = apiError(404, 10059, 'stream not found');
const NO_CONSUMER = apiError(404, 10014, 'consumer not found');
const NO_ROOM = apiError(503, 10023, 'insufficient resources');
const NO_MESSAGE = apiError(404, 10037, 'no message found');

/** What one server has of a stream. */
class Replica {
  /** How much of the stream's log was applied. */
  applied = 0;
  messages = new Map();
  /** The sequences of each subject, in order. */
  bySubject = new Map();
  bytes = 0;
  lastSeq = 0;
  lastTime = 0;

  apply(operation) {
    this.applied += 1;
    const { kind } = operation;
    if (kind === 'add') {
      const { message } = operation;
      this.messages.set(message.seq, message);
      this.bytes += sizeOf(message);
      const list = this.bySubject.get(message.subject);
      if (list === undefined) this.bySubject.set(message.subject, [message.seq]);
      else list.push(message.seq);
      this.lastSeq = message.seq;
      this.lastTime = message.time;
    } else for (const seq of operation.seqs) this.#remove(seq);
  }

  #remove(seq) {
    const message = this.messages.get(seq);
    if (message === undefined) return;
    this.messages.delete(seq);
    this.bytes -= sizeOf(message);
    const list = this.bySubject.get(message.subject).filter((each) => each !== seq);
    if (list.length === 0) this.bySubject.delete(message.subject);
    else this.bySubject.set(message.subject, list);
  }

  last(subject) {
    if (!/[*>]/.test(subject)) return this.messages.get(this.bySubject.get(subject)?.at(-1));
    return [...this.messages.values()].findLast((each) => matches(subject, each.subject));
  }

  get firstSeq() {
    const [first] = this.messages.keys();
    return first ?? (this.lastSeq === 0 ? 0 : this.lastSeq + 1);
  }
}

const sizeOf = ({ subject, header, data }) => subject.length + header.length + data.length + 22;

class Stream {
  log = [];
  replicas = new Map();
  leader;
  consumers = new Map();
  created;
  /** Set while the replicas that reach each other wait for a leader. */
  electing;

  constructor(config, created, servers) {
    this.config = config;
    this.created = created;
    for (const server of servers) this.replicas.set(server, new Replica());
    [this.leader] = servers;
  }

  get name() {
    return this.config.name;
  }

  get head() {
    return this.replicas.get(this.leader);
  }

  takes(subject) {
    return this.config.subjects.some((filter) => matches(filter, subject));
  }
}

export class JetStream {
  #clock;
  #random;
  servers = [];
  domain;
  streams = new Map();
  /** Is told what was stored. */
  onStored;
  /** The disk has no room. */
  isFull = false;

  constructor({ clock, random = Math.random, domain }) {
    this.#clock = clock;
    this.#random = random;
    this.domain = domain;
  }

  join(server) {
    this.servers.push(server);
  }

  /** What is kept: of each stream how many subjects, messages and consumers it has. */
  get sizes() {
    return [...this.streams.values()].map(({ name, replicas, consumers }) => ({
      stream: name,
      subjects: Math.max(...[...replicas.values()].map(({ bySubject }) => bySubject.size)),
      messages: Math.max(...[...replicas.values()].map(({ messages }) => messages.size)),
      consumers: consumers.size,
    }));
  }

  /** All that is stored is lost. */
  wipe() {
    for (const stream of this.streams.values()) this.#forget(stream);
    this.streams.clear();
  }

  #reaches(one, other) {
    return one === other ? one.isUp : one.isUp && other.isUp && one.reaches(other);
  }

  #hasQuorum(server, members) {
    const reached = members.filter((each) => this.#reaches(server, each)).length;
    return reached * 2 > members.length;
  }

  /** The server that answers for the cluster, if `server` reaches one. */
  #metaLeader() {
    return this.servers.find((each) => each.isUp && this.#hasQuorum(each, this.servers));
  }

  /** To be called whenever servers have gone, come or been parted. */
  changed() {
    for (const stream of this.streams.values()) {
      this.#catchUp(stream);
      const members = [...stream.replicas.keys()];
      const { leader } = stream;
      if (leader?.isUp && this.#hasQuorum(leader, members)) continue;
      if (leader !== undefined && !leader.isUp) stream.leader = undefined;
      if (stream.electing !== undefined) continue;
      const ms = members.length === 1 ? 0 : ELECTION_MS * (0.5 + this.#random());
      const elect = () => {
        stream.electing = undefined;
        this.#elect(stream);
      };
      if (ms === 0) elect();
      else stream.electing = this.#clock.later(ms, elect);
    }
  }

  #elect(stream) {
    const members = [...stream.replicas.keys()];
    const able = members.filter((each) => each.isUp && this.#hasQuorum(each, members));
    // Whoever has all that a majority has stored may lead.
    const newest = able.toSorted(
      (one, other) => stream.replicas.get(other).applied - stream.replicas.get(one).applied,
    )[0];
    if (newest === undefined) return;
    stream.leader = newest;
    this.#catchUp(stream);
    for (const consumer of stream.consumers.values()) this.#pump(stream, consumer);
  }

  /** Replicas that reach the leader learn what they have missed. */
  #catchUp(stream) {
    const { leader } = stream;
    if (leader === undefined || !leader.isUp) return;
    for (const [server, replica] of stream.replicas) {
      if (server !== leader && !this.#reaches(leader, server)) continue;
      if (server === leader && !this.#hasQuorum(leader, [...stream.replicas.keys()])) continue;
      while (replica.applied < stream.log.length) replica.apply(stream.log[replica.applied]);
    }
  }

  #append(stream, operation) {
    stream.log.push(operation);
    this.#catchUp(stream);
  }

  /** The stream that this server leads, with a majority, and stores what is sent to `subject`. */
  #ledHere(server, subject) {
    for (const stream of this.streams.values()) {
      if (stream.leader === server && stream.takes(subject)) return stream;
    }
    return undefined;
  }

  #canWrite(stream) {
    return this.#hasQuorum(stream.leader, [...stream.replicas.keys()]);
  }

  /** Whether somebody at this server listens to the subject. */
  listens(server, subject) {
    if (subject.startsWith(API)) {
      const direct = /^\$JS\.API\.DIRECT\.GET\.([^.]+)/.exec(subject)?.[1];
      if (direct === undefined) return true;
      const stream = this.streams.get(direct);
      return stream?.config.allow_direct === true && stream.replicas.has(server);
    }
    return this.#ledHere(server, subject) !== undefined;
  }

  /** A message has come to `server`, from its clients or another server. */
  onMessage(server, message, isFirst) {
    const { subject } = message;
    if (subject.startsWith(API)) this.#onRequest(server, message, isFirst);
    else {
      const stream = this.#ledHere(server, subject);
      if (stream !== undefined) this.#store(server, stream, message);
    }
  }

  #reply(server, { reply }, value) {
    if (reply === undefined) return;
    server.publish({ subject: reply, header: EMPTY, data: Buffer.from(JSON.stringify(value)) });
  }

  #store(server, stream, message) {
    if (!this.#canWrite(stream)) return; // silent: it waits for the others
    this.#expire(stream);
    const { config } = stream;
    const refusal = this.#refusal(stream, message);
    if (refusal !== undefined) {
      this.#reply(server, message, { stream: config.name, seq: 0, ...refusal });
      return;
    }
    const { head } = stream;
    const { subject, header, data } = message;
    const seq = head.lastSeq + 1;
    const time = this.#clock.now();
    const rollup = parseHeaders(header).get('Nats-Rollup');
    const stored = { subject, header, data, seq, time };
    this.#append(stream, { kind: 'add', message: stored });
    let gone = [];
    if (rollup === 'all') gone = [...head.messages.keys()];
    else if (rollup === 'sub') gone = head.bySubject.get(subject);
    else if (config.max_msgs_per_subject > 0) {
      gone = head.bySubject.get(subject).slice(0, -config.max_msgs_per_subject);
    }
    gone = gone.filter((each) => each !== seq);
    if (gone.length > 0) this.#append(stream, { kind: 'remove', seqs: gone });
    this.onStored?.(config.name, message);
    const domain = this.domain === undefined ? {} : { domain: this.domain };
    this.#reply(server, message, { stream: config.name, ...domain, seq });
    for (const consumer of stream.consumers.values()) this.#pump(stream, consumer);
  }

  #refusal(stream, { subject, header, data }) {
    const { config, head } = stream;
    if (this.isFull) return NO_ROOM;
    const headers = parseHeaders(header);
    const name = headers.get('Nats-Expected-Stream');
    if (name !== undefined && name !== config.name) {
      return apiError(400, 10060, 'expected stream does not match');
    }
    if (config.max_msg_size > 0 && header.length + data.length > config.max_msg_size) {
      return apiError(400, 10054, 'message size exceeds maximum allowed');
    }
    const wrong = (seq) => apiError(400, 10071, `wrong last sequence: ${seq}`);
    const last = headers.get('Nats-Expected-Last-Sequence');
    if (last !== undefined && Number(last) !== head.lastSeq) return wrong(head.lastSeq);
    const own = headers.get('Nats-Expected-Last-Subject-Sequence');
    const there = head.last(subject)?.seq ?? 0;
    if (own !== undefined && Number(own) !== there) return wrong(there);
    if (config.max_bytes > 0 && config.discard === 'new') {
      const size = sizeOf({ subject, header, data });
      if (head.bytes + size > config.max_bytes) {
        return apiError(400, 10077, 'maximum bytes exceeded');
      }
    }
    return undefined;
  }

  #expire(stream) {
    const { config, head } = stream;
    if (!(config.max_age > 0)) return;
    const since = this.#clock.now() - config.max_age / NS;
    const seqs = [];
    for (const { seq, time } of head.messages.values()) {
      if (time > since) break;
      seqs.push(seq);
    }
    if (seqs.length > 0) this.#append(stream, { kind: 'remove', seqs });
  }

  // ---------------------------------------------------------------- requests

  #onRequest(server, message, isFirst) {
    const [, , ...tokens] = message.subject.split('.');
    const [area, verb] = tokens;
    if (area === 'DIRECT') {
      this.#direct(server, message, tokens, isFirst);
      return;
    }
    const isGet = area === 'STREAM' && verb === 'MSG';
    const name = isGet ? tokens[3] : tokens[2];
    const stream = this.streams.get(name);
    const isCreate = area === 'STREAM' && verb === 'CREATE';
    const isOfStream =
      !isCreate && stream !== undefined && area !== 'INFO' && !['NAMES', 'LIST'].includes(verb);
    // One server answers: the leader of the stream, or that of the cluster.
    const answerer = isOfStream ? stream.leader : this.#metaLeader();
    if (answerer !== server) return;
    const members = isOfStream ? [...stream.replicas.keys()] : this.servers;
    if (!this.#hasQuorum(server, members)) return;
    let request = {};
    try {
      if (message.data.length > 0) request = JSON.parse(message.data.toString());
    } catch {
      this.#reply(server, message, apiError(400, 10025, 'invalid JSON'));
      return;
    }
    const answer = this.#answer(server, tokens, request, stream);
    const kind = isGet ? `${verb}_${tokens[2]}` : (verb ?? 'account_info');
    const type = `io.nats.jetstream.api.v1.${area}_${kind}_response`.toLowerCase();
    this.#reply(server, message, { type, ...answer });
  }

  #answer(server, [area, verb, ...rest], request, stream) {
    if (area === 'INFO') return this.#account();
    if (area === 'STREAM') {
      if (verb === 'NAMES' || verb === 'LIST') return this.#list(verb, request);
      if (verb === 'CREATE') return this.#create(server, request, stream);
      if (stream === undefined) return NO_STREAM;
      this.#expire(stream);
      if (verb === 'INFO') return this.#info(stream, request);
      if (verb === 'UPDATE') {
        Object.assign(stream.config, request);
        return this.#info(stream, {});
      }
      if (verb === 'DELETE') {
        this.#forget(stream);
        this.streams.delete(stream.name);
        return { success: true };
      }
      if (verb === 'PURGE') return this.#purge(stream, request);
      return rest[0] === 'GET' ? this.#get(stream, request) : this.#delete(stream, request);
    }
    if (area !== 'CONSUMER' || stream === undefined) return NO_STREAM;
    const consumer = stream.consumers.get(rest[1]);
    if (verb === 'CREATE') return this.#consume(stream, request.config, rest[1]);
    if (verb === 'NAMES') return page({ consumers: [...stream.consumers.keys()] });
    if (consumer === undefined) return NO_CONSUMER;
    if (verb === 'DELETE') this.#endConsumer(stream, consumer);
    return verb === 'DELETE' ? { success: true } : this.#consumerInfo(stream, consumer);
  }

  #account() {
    const heads = [...this.streams.values()].flatMap(({ head }) => (head ? [head] : []));
    const limits = { max_memory: -1, max_storage: -1, max_streams: -1, max_consumers: -1 };
    return {
      memory: 0,
      storage: heads.reduce((sum, { bytes }) => sum + bytes, 0),
      streams: this.streams.size,
      consumers: 0,
      limits: { ...limits, max_ack_pending: -1 },
      api: { total: 0, errors: 0 },
      ...(this.domain !== undefined && { domain: this.domain }),
    };
  }

  #list(verb, { subject }) {
    const all = [...this.streams.values()].filter(
      ({ config, leader }) =>
        leader !== undefined &&
        (subject === undefined || config.subjects.some((each) => matches(each, subject))),
    );
    return page({ streams: all.map((each) => (verb === 'NAMES' ? each.name : infoOf(each))) });
  }

  #create(server, given, known) {
    const config = { ...DEFAULTS, ...given };
    if (known !== undefined) {
      const isSame = ['subjects', 'max_msgs_per_subject', 'max_bytes', 'num_replicas'].every(
        (key) => JSON.stringify(known.config[key]) === JSON.stringify(config[key]),
      );
      if (isSame) return infoOf(known);
      return apiError(400, 10058, 'stream name already in use with a different configuration');
    }
    const replicas = Math.max(1, config.num_replicas);
    if (replicas > 1 && this.servers.length === 1) {
      return apiError(500, 10074, 'replicas > 1 not supported in non-clustered mode');
    }
    const able = this.servers.filter((each) => this.#reaches(server, each));
    if (able.length < replicas) {
      return apiError(400, 10005, 'no suitable peers for placement');
    }
    const first = Math.floor(this.#random() * able.length);
    const chosen = Array.from({ length: replicas }, (_, at) => able[(first + at) % able.length]);
    const stream = new Stream(config, this.#clock.now(), chosen);
    this.streams.set(config.name, stream);
    return { ...infoOf(stream), did_create: true };
  }

  #info(stream, { subjects_filter: filter }) {
    const info = infoOf(stream);
    if (filter === undefined) return info;
    const counted = [...stream.head.bySubject].filter(([subject]) => matches(filter, subject));
    info.state.subjects = Object.fromEntries(
      counted.map(([subject, { length }]) => [subject, length]),
    );
    return { ...info, total: counted.length, offset: 0, limit: 100_000 };
  }

  #purge(stream, { filter, seq, keep = 0 }) {
    let gone = [...stream.head.messages.values()].filter(
      (message) =>
        (filter === undefined || matches(filter, message.subject)) &&
        (seq === undefined || message.seq < seq),
    );
    if (keep > 0) gone = gone.slice(0, -keep);
    const seqs = gone.map((message) => message.seq);
    if (seqs.length > 0) this.#append(stream, { kind: 'remove', seqs });
    return { success: true, purged: seqs.length };
  }

  #get({ head }, query) {
    const message = found(head, query);
    if (message === undefined) return NO_MESSAGE;
    const { subject, seq, time, header, data } = message;
    const hdrs = header.length > 0 ? { hdrs: header.toString('base64') } : {};
    const body = data.length > 0 ? { data: data.toString('base64') } : {};
    return { message: { subject, seq, time: new Date(time).toISOString(), ...hdrs, ...body } };
  }

  #delete(stream, { seq }) {
    if (!stream.head.messages.has(seq)) {
      return apiError(400, 10043, `sequence ${seq} not found`);
    }
    this.#append(stream, { kind: 'remove', seqs: [seq] });
    return { success: true };
  }

  /** Each replica answers from what it has; of several the nearest. */
  #direct(server, message, [, , name, ...rest], isFirst) {
    const stream = this.streams.get(name);
    const replica = stream?.replicas.get(server);
    if (replica === undefined || stream.config.allow_direct !== true) return;
    if (!isFirst && [...stream.replicas.keys()].some((each) => each !== server && each.isUp)) {
      const nearer = [...stream.replicas.keys()].find(
        (each) => each.isUp && message.from?.reaches(each),
      );
      if (nearer !== server) return;
    }
    if (stream.leader === server) this.#expire(stream);
    const last = rest.join('.');
    const query = last === '' ? JSON.parse(message.data.toString()) : { last_by_subj: last };
    const there = found(replica, query);
    const { reply } = message;
    if (there === undefined) {
      const header = headerBlock({}, '404 Message Not Found');
      server.publish({ subject: reply, header, data: EMPTY });
      return;
    }
    const about = headerBlock({
      'Nats-Stream': name,
      'Nats-Subject': there.subject,
      'Nats-Sequence': there.seq,
      'Nats-Time-Stamp': new Date(there.time).toISOString(),
    });
    const own = there.header.length === 0 ? '\r\n' : there.header.toString().replace(/^.*\r\n/, '');
    const header = Buffer.concat([about.subarray(0, -2), Buffer.from(own)]);
    server.publish({ subject: reply, header, data: there.data });
  }

  // ---------------------------------------------------------------- push consumers

  #consume(stream, config, named) {
    const name = config.name ?? named ?? `c${Math.floor(this.#random() * 1e9)}`;
    const known = stream.consumers.get(name);
    if (known !== undefined) return this.#consumerInfo(stream, known);
    const { head } = stream;
    const filters = config.filter_subjects ?? [config.filter_subject ?? '>'];
    const isWanted = ({ subject }) => filters.some((filter) => matches(filter, subject));
    let first = 1;
    let only;
    if (config.deliver_policy === 'new') first = head.lastSeq + 1;
    if (config.deliver_policy === 'by_start_sequence') first = config.opt_start_seq;
    if (config.deliver_policy === 'last') {
      first = [...head.messages.values()].findLast(isWanted)?.seq ?? head.lastSeq + 1;
    }
    if (config.deliver_policy === 'last_per_subject') {
      only = new Set([...head.bySubject.values()].map((list) => list.at(-1)));
    }
    const consumer = {
      name,
      config: { ...config, name },
      created: this.#clock.now(),
      isWanted,
      /** Of what was stored before, these are sent. */
      only,
      before: head.lastSeq,
      next: first,
      delivered: 0,
      lastSeq: 0,
      heartbeat: undefined,
      idleSince: this.#clock.now(),
    };
    stream.consumers.set(name, consumer);
    const info = this.#consumerInfo(stream, consumer);
    this.#watch(stream, consumer);
    this.#clock.later(0, () => this.#pump(stream, consumer));
    return info;
  }

  #pending(stream, consumer) {
    return [...stream.head.messages.values()].filter(
      (message) =>
        message.seq >= consumer.next &&
        consumer.isWanted(message) &&
        (consumer.only === undefined ||
          message.seq > consumer.before ||
          consumer.only.has(message.seq)),
    );
  }

  #consumerInfo(stream, consumer) {
    const { name, config, created, delivered, lastSeq } = consumer;
    const at = { consumer_seq: delivered, stream_seq: lastSeq };
    return {
      stream_name: stream.name,
      name,
      created: new Date(created).toISOString(),
      config,
      delivered: at,
      ack_floor: { consumer_seq: 0, stream_seq: 0 },
      num_ack_pending: 0,
      num_redelivered: 0,
      num_waiting: 0,
      num_pending: this.#pending(stream, consumer).length,
      push_bound: false,
      ts: new Date(this.#clock.now()).toISOString(),
    };
  }

  #pump(stream, consumer) {
    const { leader } = stream;
    const target = consumer.config.deliver_subject;
    if (leader === undefined || stream.consumers.get(consumer.name) !== consumer) return;
    if (target === undefined || !leader.hasInterest(target)) return;
    const pending = this.#pending(stream, consumer);
    for (const [at, message] of pending.entries()) {
      consumer.delivered += 1;
      consumer.next = message.seq + 1;
      consumer.lastSeq = message.seq;
      const left = pending.length - at - 1;
      const numbers = [1, message.seq, consumer.delivered, message.time * NS, left];
      const data = consumer.config.headers_only === true ? EMPTY : message.data;
      leader.publish({
        subject: message.subject,
        target,
        reply: `$JS.ACK.${stream.name}.${consumer.name}.${numbers.join('.')}`,
        header: message.header,
        data,
      });
    }
    if (pending.length > 0) consumer.idleSince = this.#clock.now();
  }

  /** Heartbeats; and an end of consumers that nobody listens to. */
  #watch(stream, consumer) {
    const { idle_heartbeat: beat = 5_000 * NS, inactive_threshold: most = 5_000 * NS } =
      consumer.config;
    let unheardSince;
    const look = () => {
      const { leader } = stream;
      const target = consumer.config.deliver_subject;
      const now = this.#clock.now();
      if (leader !== undefined && leader.hasInterest(target)) {
        unheardSince = undefined;
        this.#pump(stream, consumer);
        if (consumer.config.idle_heartbeat !== undefined) {
          const header = headerBlock(
            { 'Nats-Last-Consumer': consumer.delivered, 'Nats-Last-Stream': consumer.lastSeq },
            '100 Idle Heartbeat',
          );
          leader.publish({ subject: target, header, data: EMPTY });
        }
      } else unheardSince ??= now;
      if (unheardSince !== undefined && now - unheardSince >= most / NS) {
        this.#endConsumer(stream, consumer);
      } else consumer.heartbeat = this.#clock.later(beat / NS, look);
    };
    consumer.heartbeat = this.#clock.later(beat / NS, look);
  }

  /** Somebody listens to a subject from now on. */
  onInterest(subject) {
    for (const stream of this.streams.values()) {
      for (const consumer of stream.consumers.values()) {
        const target = consumer.config.deliver_subject;
        if (target !== undefined && matches(subject, target)) this.#pump(stream, consumer);
      }
    }
  }

  #endConsumer(stream, consumer) {
    consumer.heartbeat?.();
    stream.consumers.delete(consumer.name);
  }

  #forget(stream) {
    for (const consumer of stream.consumers.values()) this.#endConsumer(stream, consumer);
    stream.electing?.();
  }
}

const DEFAULTS = {
  retention: 'limits',
  max_consumers: -1,
  max_msgs: -1,
  max_bytes: -1,
  max_age: 0,
  max_msgs_per_subject: -1,
  max_msg_size: -1,
  discard: 'old',
  storage: 'file',
  num_replicas: 1,
  duplicate_window: 120_000 * NS,
  allow_direct: false,
  mirror_direct: false,
  sealed: false,
  deny_delete: false,
  deny_purge: false,
  allow_rollup_hdrs: false,
};

const page = (lists) => {
  const [list] = Object.values(lists);
  return { total: list.length, offset: 0, limit: 1024, ...lists };
};

function found(replica, { seq, last_by_subj: last, next_by_subj: next }) {
  if (last !== undefined) return replica.last(last);
  if (next === undefined) return replica.messages.get(seq);
  for (const message of replica.messages.values()) {
    if (message.seq >= (seq ?? 0) && matches(next, message.subject)) return message;
  }
  return undefined;
}

function infoOf(stream) {
  const { config, created, head, leader, consumers, replicas } = stream;
  const first = head.messages.get(head.firstSeq);
  const iso = (ms) =>
    ms === undefined || ms === 0 ? '0001-01-01T00:00:00Z' : new Date(ms).toISOString();
  return {
    config: { ...config },
    created: iso(created),
    state: {
      messages: head.messages.size,
      bytes: head.bytes,
      first_seq: head.firstSeq,
      first_ts: iso(first?.time),
      last_seq: head.lastSeq,
      last_ts: iso(head.lastTime),
      num_subjects: head.bySubject.size,
      consumer_count: consumers.size,
    },
    ...(replicas.size > 1 && { cluster: { leader: leader.name } }),
  };
}
