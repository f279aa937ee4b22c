/** What a command of `npx allstop` is, and the two ways in which it fails. */

/** `json`: the same as `text`, for programs. */
export type CommandResult = {
  text: string;
  json: unknown;
  exitCode?: number;
  /** Something that cannot be ended may be going on, and is not waited for. */
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
  slots?: string | undefined;
};

export type Command = {
  /** In the list of commands. */
  summary: string;
  /** More of it, for `allstop <command> --help`. */
  help: string;
  /** Its options beside `--json`, which all have. */
  options: readonly Exclude<keyof Options, 'json'>[];
  /** Those that cannot be left out. */
  required?: readonly Exclude<keyof Options, 'json'>[];
  run: (options: Options) => CommandResult | Promise<CommandResult>;
};

/** It was called in a way that cannot be right. */
export class UsageError extends Error {}

/** It could not do what it was asked; the message is for people. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}
