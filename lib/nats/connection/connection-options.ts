/** The options of a connection: addresses of servers, credentials, TLS. */

import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from '@nats-io/transport-node';
import {
  type Checks,
  checkBoolean,
  checkOptions,
  checkString,
  invalidSecret,
  invalidType,
  isBag,
  unchecked,
} from '../../base/arguments.ts';
import { attempt, messageOf } from '../../base/thrown-value.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';

/** The TLS options of the NATS client: paths of PEM files (`…File`), or their content. */
export type NatsTlsOptions = {
  /**
   * The path of the certificates of the authorities that the client trusts. By default it trusts
   * `ca`, or without that those that Node trusts.
   */
  caFile?: string | undefined;
  /** The content of such a file. Not used if there is a `caFile`. Default: none. */
  ca?: string | undefined;
  /** The path of the client's own certificate. By default the client has that of `cert`. */
  certFile?: string | undefined;
  /** The content of such a file. Not used if there is a `certFile`. Default: no certificate. */
  cert?: string | undefined;
  /** The path of the private key of the client's certificate. Default: the key of `key`. */
  keyFile?: string | undefined;
  /** The content of such a file. Not used if there is a `keyFile`. Default: no key. */
  key?: string | undefined;
  /**
   * Whether TLS begins before the server's INFO, as a server with `handshake_first` wants it.
   * Default: false.
   */
  handshakeFirst?: boolean | undefined;
};

/**
 * One way to log in: `user` and `pass`, `token`, `nkey`, or `creds`. Default: the user or token in
 * an address of `servers`, or without one no login.
 */
export type NatsCredentials = {
  /** The name of the user, with `pass`. Default: the one in an address of `servers`, or none. */
  user?: string | undefined;
  /** The password of `user`. Default: the one in an address of `servers`, or none. */
  pass?: string | undefined;
  /** A token. Default: the one in an address of `servers` (`nats://TOKEN@host`), or none. */
  token?: string | undefined;
  /** The seed of an nkey: `SU…`. Default: none. */
  nkey?: string | undefined;
  /** The content of a .creds file. Default: none. */
  creds?: string | undefined;
};

/** Which JetStream is used: that of a domain, or of an API prefix, as of the official client. */
export type NatsJetStreamOptions = {
  /** The domain, as in `jetstream { domain: hub }` of a server. Default: that of the account. */
  domain?: string | undefined;
  /** The prefix of the API's subjects. Default: `$JS.API`, or that of `domain`. */
  apiPrefix?: string | undefined;
};

/** What the options of NatsStrategy and NatsResults say about connections. */
export type NatsConnect = NatsCredentials & {
  /**
   * `nats://host:4222`, `tls://…` or `host:port`: one or several addresses of one server or one
   * cluster of servers.
   */
  servers: string | readonly string[];
  /**
   * `true`, or the options of TLS: a server without TLS is refused. Default: the same if an address
   * begins with `tls://`; else TLS is used if the server has it.
   */
  tls?: NatsTlsOptions | boolean | undefined;
  /**
   * Options of the official client (`@nats-io/transport-node`), or a function that gives them, which
   * is called at every connection: so a secret may change. They come before the other options here,
   * but `servers` and reconnecting stay allstop's. A function that throws is a failed attempt, and is
   * called again. Default: none.
   */
  connect?:
    | ConnectionOptions
    | (() => ConnectionOptions | PromiseLike<ConnectionOptions>)
    | undefined;
  /** Default: the JetStream of the account. */
  jetstream?: NatsJetStreamOptions | undefined;
};

/**
 * Checked options. `servers` are `host:port`: credentials in addresses were moved to the fields.
 */
export type NatsConnectionOptions = NatsCredentials & {
  servers: readonly string[];
  tls?: NatsTlsOptions | undefined;
  connect?: NatsConnect['connect'];
  jetstream?: NatsJetStreamOptions | undefined;
  /** Reads the credentials anew, for each connection, in place of those here. */
  renew?: (() => NatsCredentials) | undefined;
};

type Given = Partial<NatsConnect>;

const CREDENTIALS = ['user', 'pass', 'token', 'nkey', 'creds'] as const;
/** The names of the options that say how to connect, of whatever class takes them. */
export const CONNECTION_OPTIONS: Checks = Object.fromEntries(
  ['servers', 'tls', 'connect', 'jetstream', ...CREDENTIALS].map((name) => [name, unchecked]),
);
const TLS: Checks = {
  caFile: checkString,
  ca: checkString,
  certFile: checkString,
  cert: checkString,
  keyFile: checkString,
  key: checkString,
  handshakeFirst: checkBoolean,
};
const DEFAULT_PORT = '4222';

/** `hasTls`: its scheme is tls:. */
type Server = { address: string; hasTls: boolean; user: string; pass: string };

/** Splits an address. */
function parseServer(server: string): Server {
  const url = attempt(() => new URL(server.includes('://') ? server : `nats://${server}`));
  const { protocol, hostname, port, pathname, search, hash, username, password } = url ?? {};
  const [user, pass] = [username, password].map((each = '') =>
    attempt(() => decodeURIComponent(each)),
  );
  const isOurs = (protocol === 'nats:' || protocol === 'tls:') && hostname !== '';
  const isBare = (pathname === '' || pathname === '/') && search === '' && hash === '';
  if (!isOurs || !isBare || user === undefined || pass === undefined) {
    // An address with @ may contain a password.
    const what = server.includes('@')
      ? "A server's address (with credentials, so it is not shown) is not valid"
      : `'${server}' is not a valid server address`;
    throw new InvalidArgumentError(
      `${what}: use nats://host:4222, tls://host:4222 or host:4222 (a port is a number from 1 to 65535)`,
    );
  }
  return {
    address: `${hostname}:${port || DEFAULT_PORT}`,
    hasTls: protocol === 'tls:',
    user,
    pass,
  };
}

/**
 * @throws TypeError (`ERR_INVALID_ARG_TYPE`), InvalidArgumentError: an invalid address, or two
 *   ways to log in
 */
export function checkConnectionOptions(
  given: Given & Pick<NatsConnectionOptions, 'renew'>,
): NatsConnectionOptions {
  const list = typeof given.servers === 'string' ? given.servers.split(',') : given.servers;
  if (!Array.isArray(list)) {
    throw invalidType('options.servers', 'of type string or an Array', given.servers);
  }
  for (const [at, server] of list.entries()) checkString(`options.servers[${at}]`, server);
  const servers = list.map((each) => parseServer(String(each).trim()));
  if (servers.length === 0) throw new InvalidArgumentError('options.servers is empty');
  const { connect, jetstream, renew } = given;
  const login = loginOf(given, servers);
  const tls = checkTls(
    given.tls,
    servers.some(({ hasTls }) => hasTls),
  );
  if (connect !== undefined && typeof connect !== 'function') {
    checkBag('options.connect', connect, 'object or function');
  }
  return {
    servers: servers.map(({ address }) => address),
    ...login,
    tls,
    connect,
    renew,
    jetstream: jetstream === undefined ? undefined : checkJetStream(jetstream),
  };
}

/** The one way to log in, of the options or of an address. */
function loginOf(
  given: Given,
  servers: readonly { user: string; pass: string }[],
): NatsCredentials {
  const login: NatsCredentials = {};
  for (const name of CREDENTIALS) {
    const value: unknown = given[name];
    if (value === undefined) continue;
    if (typeof value !== 'string') throw invalidSecret(`options.${name}`, 'of type string', value);
    login[name] = value;
  }
  const inAddress = servers.find(({ user, pass }) => user !== '' || pass !== '');
  if (inAddress !== undefined) {
    if (Object.keys(login).length > 0) {
      throw new InvalidArgumentError(
        'Only one of user, token, nkey and creds can be given, and an address contains one already',
      );
    }
    const { user, pass } = inAddress;
    // nats://NAME@host, without a password: NAME is a token, as in every NATS client.
    return pass === '' ? { token: user } : { user, pass };
  }
  const { pass, ...ways } = login;
  if (pass !== undefined && ways.user === undefined) {
    throw new InvalidArgumentError('options.pass needs options.user');
  }
  if (Object.keys(ways).length > 1) {
    throw new InvalidArgumentError('Only one of user, token, nkey and creds can be given');
  }
  return login;
}

/** A token of a subject, or several. */
const SUBJECT = /^[^\s.*>]+(?:\.[^\s.*>]+)*$/;

function checkSubject(name: string, value: unknown): void {
  checkString(name, value);
  if (SUBJECT.test(value)) return;
  throw new InvalidArgumentError(`${name} must be a token of a subject. Received '${value}'`);
}

function checkJetStream(given: NatsJetStreamOptions): NatsJetStreamOptions {
  checkBag('options.jetstream', given, 'object');
  const checks = { domain: checkSubject, apiPrefix: checkSubject };
  const { domain, apiPrefix } = checkOptions('options.jetstream', given, checks);
  if (domain !== undefined && apiPrefix !== undefined) {
    throw new InvalidArgumentError('Only one of domain and apiPrefix can be given');
  }
  return { ...given };
}

/** The value is not shown: it may have secrets. */
function checkBag(name: string, value: unknown, expected: string): void {
  if (!isBag(value)) throw invalidSecret(name, `of type ${expected}`, value);
}

function checkTls(
  given: NatsTlsOptions | boolean | undefined,
  isWanted: boolean,
): NatsTlsOptions | undefined {
  if (given === undefined || given === false) return isWanted ? {} : undefined;
  if (given === true) return {};
  if (!isBag(given)) throw invalidType('options.tls', 'of type object or boolean', given);
  checkOptions('options.tls', given, TLS);
  return { ...given };
}

const PREFIX = 'ALLSTOP_NATS_';
/** The environment variables that `credentialsOf` reads. */
export const CREDENTIAL_VARIABLES: readonly string[] = [
  'USER',
  'PASS',
  'PASS_FILE',
  'TOKEN',
  'TOKEN_FILE',
  'NKEY',
  'NKEY_FILE',
  'CREDS',
  'CREDS_FILE',
  'CA_FILE',
  'CERT_FILE',
  'KEY_FILE',
  'HANDSHAKE_FIRST',
].map((name) => `${PREFIX}${name}`);

/**
 * Reads the credentials of `allstop worker` and `allstop doctor` from ALLSTOP_NATS_* variables.
 * There are no command line options for credentials, because all users of a machine can read
 * command lines.
 *
 * @throws InvalidArgumentError: a file cannot be read, or there is a password without a user
 */
export function credentialsOf(env: NodeJS.ProcessEnv): NatsCredentials & { tls?: NatsTlsOptions } {
  const of = (name: string): string | undefined => {
    const text = env[`${PREFIX}${name}`];
    return text === undefined || text === '' ? undefined : text;
  };
  const read = (variable: string, path: string): string => {
    try {
      return readFileSync(path, 'utf8').trim();
    } catch (error) {
      const why = `ALLSTOP_NATS_${variable} cannot be read: ${messageOf(error)}`;
      throw new InvalidArgumentError(why, { cause: error });
    }
  };
  const textOf = (name: string): string | undefined => {
    const path = of(`${name}_FILE`);
    return path === undefined ? of(name) : read(`${name}_FILE`, path);
  };
  /** The path, not the content: the client reads the file anew for each connection. */
  const fileOf = (variable: string): string | undefined => {
    const path = of(variable);
    if (path !== undefined) read(variable, path);
    return path;
  };
  const [caFile, certFile, keyFile] = ['CA_FILE', 'CERT_FILE', 'KEY_FILE'].map(fileOf);
  const tls: NatsTlsOptions = {
    ...(caFile !== undefined && { caFile }),
    ...(certFile !== undefined && { certFile }),
    ...(keyFile !== undefined && { keyFile }),
    ...(of('HANDSHAKE_FIRST') === '1' && { handshakeFirst: true }),
  };
  const found: NatsCredentials & { tls?: NatsTlsOptions } = {
    user: of('USER'),
    pass: textOf('PASS'),
    token: textOf('TOKEN'),
    nkey: textOf('NKEY'),
    creds: textOf('CREDS'),
  };
  if (found.pass !== undefined && found.user === undefined) {
    throw new InvalidArgumentError('ALLSTOP_NATS_PASS needs ALLSTOP_NATS_USER, which is not set');
  }
  if (Object.keys(tls).length > 0) found.tls = tls;
  return found;
}
