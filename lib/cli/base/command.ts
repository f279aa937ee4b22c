/** The shape of a command of `npx allstop`, and the two kinds of errors that a command throws. */

/** `text` is printed for people; `json` holds the same for programs, and is printed by `--json`. */
export type CommandResult = {
  text: string;
  json: unknown;
  exitCode?: number;
  /**
   * Work that cannot be cancelled, such as a DNS lookup, may still be running: main.ts then calls
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
  job?: string | undefined;
  task?: string | undefined;
  spec?: string | undefined;
  definition?: string | undefined;
  slots?: string | undefined;
  setup?: string | undefined;
  teardown?: string | undefined;
  output?: string | undefined;
};

export type Command = {
  /** One line, for the list of commands in `allstop --help`. */
  summary: string;
  /** The text of `allstop <command> --help`. */
  help: string;
  /** What the command takes besides options, as the usage names it: FILE. Undefined: nothing. */
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
export class UsageError extends Error {}

/** The command could not do its work. The message says why, for people. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}
