/**
 * A simulated NATS server: the client protocol, subjects, and the routes and leaf links to other
 * servers. Its JetStream is in jetstream.mjs; bytes come and go by network.mjs.
 *
 * A message goes from the client's server to those that it reaches: by routes one hop, by leaf links
 * one hop more. The order of two messages on one way stays.
 */

import { Buffer } from 'node:buffer';
import { headerBlock, matches } from './jetstream.mjs';

const CRLF = Buffer.from('\r\n');
const EMPTY = Buffer.alloc(0);
/** A NATS server asks silent clients as often, and gives them up after so many questions. */
const PING_MS = 20_000;
const MOST_PINGS = 2;

/** One client's connection, at the server's end. */
class Client {
  #server;
  #send;
  #close;
  #rest = EMPTY;
  /** Set while a payload is awaited. */
  #awaited;
  #hasConnected = false;
  #pings = 0;
  #pinging;
  subscriptions = new Map();
  wantsHeaders = false;
  wantsNoResponders = false;
  user;
  /** The name of the client's place, for histories. */
  by;

  constructor(server, id, { send, close, by }) {
    this.#server = server;
    this.id = id;
    this.by = by;
    this.#send = send;
    this.#close = close;
  }

  greet() {
    this.#line(`INFO ${JSON.stringify(this.#server.info(this.id))}`);
    this.#ping();
  }

  #ping() {
    const { clock } = this.#server;
    this.#pinging = clock.later(PING_MS, () => {
      this.#pings += 1;
      if (this.#pings > MOST_PINGS) {
        this.end('Stale Connection');
        return;
      }
      this.#line('PING');
      this.#ping();
    });
  }

  #line(text) {
    this.#send(Buffer.from(`${text}\r\n`));
  }

  /** The server ends the connection, and says why. */
  end(why) {
    if (why !== undefined) this.#line(`-ERR '${why}'`);
    this.#close();
    this.closed();
  }

  /** The connection is over. */
  closed() {
    this.#pinging();
    this.#server.forget(this);
  }

  receive(bytes) {
    if (!this.#server.has(this)) {
      this.#close(); // of a server that was down meanwhile: it knows no such connection
      return;
    }
    this.#pings = 0;
    let rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    for (;;) {
      if (this.#awaited !== undefined) {
        const { total, take } = this.#awaited;
        if (rest.length < total + 2) break;
        this.#awaited = undefined;
        take(rest.subarray(0, total));
        rest = rest.subarray(total + 2);
      } else {
        const end = rest.indexOf(CRLF);
        if (end === -1) break;
        const line = rest.subarray(0, end).toString();
        rest = rest.subarray(end + 2);
        this.#command(line);
      }
      if (!this.#server.has(this)) return;
    }
    this.#rest = rest;
  }

  #command(line) {
    const [word, ...args] = line.trim().split(/\s+/);
    switch (word.toUpperCase()) {
      case 'CONNECT':
        this.#connect(JSON.parse(line.slice(line.indexOf('{'))));
        return;
      case 'PING':
        this.#line('PONG');
        return;
      case 'SUB':
        this.#subscribe(args);
        return;
      case 'UNSUB':
        this.#unsubscribe(args);
        return;
      case 'PUB':
      case 'HPUB':
        this.#publish(args, word.toUpperCase() === 'HPUB');
        return;
      case 'PONG':
        return;
      default:
        this.end('Unknown Protocol Operation');
    }
  }

  #connect(options) {
    const user = this.#server.login(options);
    if (user === undefined) {
      this.end('Authorization Violation');
      return;
    }
    this.user = user;
    this.#hasConnected = true;
    this.wantsHeaders = options.headers === true;
    this.wantsNoResponders = options.no_responders === true && this.wantsHeaders;
    this.echo = options.echo !== false;
    if (options.verbose === true) this.#line('+OK');
  }

  #subscribe(args) {
    const [subject, sid] = [args[0], args.at(-1)];
    if (!this.#server.allows(this.user, 'subscribe', subject)) {
      this.#line(`-ERR 'Permissions Violation for Subscription to "${subject}"'`);
      return;
    }
    const queue = args.length === 3 ? args[1] : undefined;
    this.subscriptions.set(sid, { client: this, sid, subject, queue, left: undefined });
    this.#server.changed();
    this.#server.onInterest(subject);
  }

  #unsubscribe([sid, most]) {
    const subscription = this.subscriptions.get(sid);
    if (subscription === undefined) return;
    const left = most === undefined ? 0 : Number(most) - (subscription.seen ?? 0);
    if (left <= 0) this.subscriptions.delete(sid);
    else subscription.left = left;
    this.#server.changed();
  }

  #publish(args, hasHeader) {
    const sizes = args.splice(hasHeader ? -2 : -1).map(Number);
    const [subject, reply] = args;
    const total = sizes.at(-1);
    if (total > this.#server.maxPayload) {
      this.end('Maximum Payload Violation');
      return;
    }
    this.#awaited = {
      total,
      take: (bytes) => {
        const length = hasHeader ? sizes[0] : 0;
        const [header, data] = [bytes.subarray(0, length), bytes.subarray(length)];
        if (!this.#hasConnected) this.end('Authorization Violation');
        else if (this.#server.allows(this.user, 'publish', subject)) {
          this.#server.fromClient(this, { subject, reply, header, data });
        } else this.#line(`-ERR 'Permissions Violation for Publish to "${subject}"'`);
      },
    };
  }

  deliver(subscription, { subject, reply, header, data }) {
    const { sid, left } = subscription;
    subscription.seen = (subscription.seen ?? 0) + 1;
    if (left !== undefined) {
      subscription.left = left - 1;
      if (left <= 1) this.subscriptions.delete(sid);
      if (left <= 1) this.#server.changed();
    }
    const to = reply === undefined ? '' : ` ${reply}`;
    const own = this.wantsHeaders ? header : EMPTY;
    const total = own.length + data.length;
    const line =
      own.length > 0
        ? `HMSG ${subject} ${sid}${to} ${own.length} ${total}`
        : `MSG ${subject} ${sid}${to} ${total}`;
    this.#send(Buffer.concat([Buffer.from(`${line}\r\n`), own, data, CRLF]));
  }
}

export class Server {
  clock;
  name;
  address;
  maxPayload;
  isUp = true;
  #network;
  #jetstream;
  #version;
  #clients = new Set();
  #ids = 0;
  #routes = new Map();
  #leafs = new Map();
  #byLiteral;
  #login;
  #advertised = [];

  /**
   * @param network - carries bytes between servers (`pipe`)
   * @param jetstream - of this server, or of the cluster that it belongs to
   * @param login - the user of a CONNECT, as { publish, subscribe }, the subjects that he may use;
   *   undefined refuses him
   */
  constructor({
    clock,
    network,
    name,
    address,
    jetstream,
    version = '2.10.27',
    maxPayload = 1_048_576,
    login = () => ({}),
  }) {
    Object.assign(this, { clock, name, address, maxPayload });
    this.#network = network;
    this.#jetstream = jetstream;
    this.#version = version;
    this.#login = login;
    jetstream?.join(this);
  }

  /** Whom it lets in from now on; those that are there are ended if `ends`. */
  setLogin(login, ends = false) {
    this.#login = login;
    if (!ends) return;
    for (const client of this.#clients) client.end('Authorization Violation');
  }

  login(options) {
    return this.#login(options);
  }

  allows(user, what, subject) {
    const subjects = user?.[what];
    return subjects === undefined || subjects.some((each) => matches(each, subject));
  }

  /** Addresses that INFO names. */
  advertise(addresses) {
    this.#advertised = addresses;
  }

  info(id) {
    const [host, port] = this.address.split(':');
    const isClustered = this.#routes.size > 0;
    return {
      server_id: `N${this.name.toUpperCase()}`,
      server_name: this.name,
      version: this.#version,
      proto: 1,
      go: 'go1.23',
      host,
      port: Number(port),
      headers: true,
      max_payload: this.maxPayload,
      ...(this.#jetstream !== undefined && { jetstream: true }),
      ...(this.#jetstream?.domain !== undefined && { domain: this.#jetstream.domain }),
      ...(isClustered && { cluster: 'c' }),
      ...(this.#advertised.length > 0 && { connect_urls: this.#advertised }),
      client_id: id,
      client_ip: '10.0.0.9',
    };
  }

  /** Joins the cluster of `other`. */
  route(other) {
    this.#routes.set(other, this.#wayTo(other, 'route'));
    other.#routes.set(this, other.#wayTo(this, 'route'));
  }

  /** Makes this server a leaf of `hub`. */
  leafOf(hub) {
    this.#leafs.set(hub, this.#wayTo(hub, 'leaf'));
    hub.#leafs.set(this, hub.#wayTo(this, 'leaf'));
  }

  #wayTo(other, kind) {
    return this.#network.pipe(this, other, (message) => other.#accept(message, kind, this));
  }

  /** Whether this server reaches the other one, now, at once or through a third. */
  reaches(other) {
    if (this.#wayOf(other) !== undefined) return this.#isLinked(other);
    return this.#near.some((each) => this.#isLinked(each) && each.#isLinked(other));
  }

  #wayOf(other) {
    return this.#routes.get(other) ?? this.#leafs.get(other);
  }

  #isLinked(other) {
    return this.isUp && other.isUp && this.#wayOf(other)?.isOpen === true;
  }

  get #near() {
    return [...this.#routes.keys(), ...this.#leafs.keys()];
  }

  get #peers() {
    const near = this.#near;
    const far = near.flatMap((each) => each.#near);
    return [...new Set([...near, ...far])].filter((each) => each !== this && this.reaches(each));
  }

  // ---------------------------------------------------------------- clients

  connect(line) {
    if (!this.isUp) line.close();
    this.#ids += 1;
    const client = new Client(this, this.#ids, line);
    this.#clients.add(client);
    client.greet();
    return client;
  }

  has(client) {
    return this.#clients.has(client);
  }

  forget(client) {
    this.#clients.delete(client);
    this.changed();
  }

  get clients() {
    return this.#clients.size;
  }

  /** Subscriptions have changed. */
  changed() {
    this.#byLiteral = undefined;
  }

  onInterest(subject) {
    this.#jetstream?.onInterest(subject);
    for (const peer of this.#peers) {
      if (peer.#jetstream !== this.#jetstream) peer.#jetstream?.onInterest(subject);
    }
  }

  #subscriptions(subject) {
    if (this.#byLiteral === undefined) {
      this.#byLiteral = new Map();
      for (const client of this.#clients) {
        for (const subscription of client.subscriptions.values()) {
          const key = /[*>]/.test(subscription.subject) ? '*' : subscription.subject;
          const list = this.#byLiteral.get(key);
          if (list === undefined) this.#byLiteral.set(key, [subscription]);
          else list.push(subscription);
        }
      }
    }
    const wild = (this.#byLiteral.get('*') ?? []).filter((each) => matches(each.subject, subject));
    return [...(this.#byLiteral.get(subject) ?? []), ...wild];
  }

  #listensHere(subject) {
    return (
      this.#subscriptions(subject).length > 0 ||
      this.#jetstream?.listens(this, this.#mapped(subject)) === true
    );
  }

  /** Whether a client of this server, or of one that it reaches, subscribes to the subject. */
  hasInterest(subject) {
    if (!this.isUp) return false;
    return [this, ...this.#peers].some((each) => each.#subscriptions(subject).length > 0);
  }

  // ---------------------------------------------------------------- messages

  /** A domain's API is that of its servers. */
  #mapped(subject) {
    const domain = this.#jetstream?.domain;
    if (domain === undefined || !subject.startsWith(`$JS.${domain}.API.`)) return subject;
    const rest = subject.slice(`$JS.${domain}.API.`.length);
    return /^\$(?:KV|O|OBJ)\./.test(rest) ? rest : `$JS.API.${rest}`;
  }

  fromClient(client, message) {
    const heard =
      this.#listensHere(message.subject) ||
      this.#peers.some((each) => each.#hears(message.subject, this));
    this.#spread({ ...message, from: this, client });
    if (heard || message.reply === undefined || !client.wantsNoResponders) return;
    const header = headerBlock({}, '503');
    const answer = { subject: message.reply, header, data: EMPTY };
    for (const each of this.#subscriptions(message.reply)) {
      if (each.client === client) client.deliver(each, answer);
    }
  }

  #hears(subject, from) {
    if (this.#isDenied(subject, from)) return false;
    return this.#listensHere(subject);
  }

  /** Between domains the APIs of JetStream and the stores stay where they are. */
  #isDenied(subject, from) {
    const ours = this.#jetstream?.domain;
    const theirs = from.#jetstream?.domain;
    if (ours === theirs || from.#jetstream === undefined) return false;
    if (ours === undefined && theirs === undefined) return false;
    return /^\$(?:JS\.API|KV|OBJ)\./.test(subject);
  }

  /** Publishes a message of the server itself. `target`: the subject of the subscriptions. */
  publish(message) {
    this.#spread({ ...message, from: this });
  }

  #spread(message) {
    if (!this.isUp) return;
    this.#deliver(message, true);
    for (const way of this.#routes.values()) way.send(message);
    for (const way of this.#leafs.values()) way.send(message);
  }

  #accept(message, kind, from) {
    if (!this.isUp || (kind === 'leaf' && this.#isDenied(message.subject, from))) return;
    this.#deliver(message, false);
    for (const [leaf, way] of this.#leafs) if (leaf !== from) way.send(message);
    if (kind === 'leaf') for (const way of this.#routes.values()) way.send(message);
  }

  #deliver(message, isFirst) {
    const { subject, target = subject, client } = message;
    const queues = new Map();
    for (const subscription of this.#subscriptions(target)) {
      if (subscription.client === client && !client.echo) continue;
      const { queue } = subscription;
      if (queue === undefined) subscription.client.deliver(subscription, message);
      else if (isFirst || !message.from.#hasQueue(target, queue)) queues.set(queue, subscription);
    }
    for (const subscription of queues.values()) subscription.client.deliver(subscription, message);
    if (message.target !== undefined) return;
    const mapped = this.#mapped(subject);
    const own = mapped === subject ? message : { ...message, subject: mapped };
    this.#jetstream?.onMessage(this, own, isFirst);
  }

  #hasQueue(subject, queue) {
    return this.#subscriptions(subject).some((each) => each.queue === queue);
  }

  // ---------------------------------------------------------------- faults

  /** The process ends; connections are reset. */
  crash() {
    this.isUp = false;
    for (const client of this.#clients) client.end();
    this.#jetstream?.changed();
  }

  /** It starts again, with what its store has. */
  restart() {
    this.isUp = true;
    this.#jetstream?.changed();
  }
}
