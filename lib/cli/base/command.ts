/** The shape of a command of `npx allstop`, and the two kinds of errors that a command throws. */

/** `text` is printed for people; `json` holds the same for programs, and is printed by `--json`. */
export type CommandResult = {
  text: string;
  json: unknown;
  exitCode?: number;
  /**
   * Work that cannot be cancelled, such as a DNS lookup, may still be running: program.ts then calls
   * process.exit() instead of waiting for it.
   */
  lingers?: boolean;
};

export type Options = {
  json?: boolean | undefined;
  relative?: boolean | undefined;
  module?: string | undefined;
  servers?: string | undefined;
  cluster?: string | undefined;
  domain?: string | undefined;
  job?: string | undefined;
  task?: string | undefined;
  spec?: string | undefined;
  definition?: string | undefined;
  slots?: string | undefined;
  recycle?: string | undefined;
  setup?: string | undefined;
  teardown?: string | undefined;
  resources?: string | undefined;
  health?: string | undefined;
  output?: string | undefined;
  exercise?: string | undefined;
  template?: string | undefined;
  runtimes?: string | undefined;
  timeout?: string | undefined;
  verbose?: boolean | undefined;
};

export type Command = {
  /** One line, for the list of commands in `allstop --help`. */
  summary: string;
  /**
   * What the command does, for `allstop help <command>`: paragraphs, which commander wraps. A line that
   * begins with two spaces is printed as it is.
   */
  help: string;
  /** Command lines that work as they are, or with names of one's own. */
  examples: readonly string[];
  /** The environment variables that the command reads, each with its meaning. */
  environment?: readonly (readonly [string, string])[];
  /** What the command needs besides options, as the usage names it: FILE. Undefined: nothing. */
  argument?: string;
  /** The options that the command takes, without `--json`, which every command takes. */
  options: readonly Exclude<keyof Options, 'json'>[];
  /** The options that must be given. */
  required?: readonly Exclude<keyof Options, 'json'>[];
  run: (
    options: Options & { argument?: string | undefined },
  ) => CommandResult | Promise<CommandResult>;
};

/** The command line is wrong: an unknown command, option or value. Exit code 2, with the usage. */
export class UsageError extends Error {
  /** The help of the command, if the command line names one that there is. */
  usage: string | undefined;

  constructor(message: string, usage?: string) {
    super(message);
    this.usage = usage;
  }

  /** The usage of the command, unless it has one already. */
  explain(usage: () => string): void {
    this.usage ??= usage();
  }
}

/** What looks like a URL with a user, a password or a token: `nats://user:pass@host`. */
const CREDENTIAL_URL = /^(?!file:)[^/\\]*:\/\/[^/]*@/i;
/** The same, also without the scheme, or with a slash in the password: for a word that no command takes. */
export const CREDENTIAL: RegExp = /^(?!file:)(?:[^/\\]+:\/\/.*|[^/\\]+)@/i;

/**
 * Refuses a text of the command line that may have credentials. Its message does not quote the text.
 *
 * @throws UsageError
 */
export function refuseCredentials(text: string): void {
  if (CREDENTIAL_URL.test(text)) throw new UsageError(CREDENTIALS_GIVEN);
}

export const CREDENTIALS_GIVEN: string =
  'Do not put credentials on the command line, where every user of this machine can read them. ' +
  'Use the environment variables that `allstop worker --help` lists';

/** The command could not do its work. The message says why, for people. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}
