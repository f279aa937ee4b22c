/** The shape of a command of `npx allstop`, and the two kinds of errors that a command throws. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../native/binary/package-files.ts';
import type { Flag, optionTexts } from './options.ts';

const manifest: { version: string; bugs: { url: string } } = JSON.parse(
  readFileSync(join(root(), 'package.json'), 'utf8'),
);

/** The version of the package. */
export const version: string = manifest.version;

/** Where faults of the package are reported. */
export const bugsUrl: string = manifest.bugs.url;

/** The columns of the terminal, at least 40; 80 without one. */
export function columns(): number {
  const { columns: own } = process.stdout.isTTY ? process.stdout : process.stderr;
  return own > 0 ? Math.max(own, 40) : 80; // undefined where it is no terminal
}

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

/** What the command line says; a flag without a value is true. */
export type Options = {
  [F in Exclude<Flag, 'help' | 'version'>]?:
    | ((typeof optionTexts)[F] extends { value: string } ? string : boolean)
    | undefined;
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
  /** How the command is used. Undefined: whoever catches the error knows which it is. */
  readonly usage: string | undefined;

  constructor(message: string, usage?: string) {
    super(message);
    this.usage = usage;
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
