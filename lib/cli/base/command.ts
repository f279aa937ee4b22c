/** The shape of a command of `npx allstop`, and the two kinds of errors that a command throws. */

import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { root } from '../../native/binary/package-files.ts';

// All options of all commands: how each is written, and what it means, with its default.

export type OptionText = {
  /** What is written after the option; undefined: the option has no value. */
  value?: string;
  short?: string;
  text: string;
};

export type Flag = keyof typeof optionTexts;

export const optionTexts = {
  relative: {
    text: 'prints the path relative to the working directory (default: an absolute path)',
  },
  module: {
    value: 'FILE',
    text: "the module whose exported functions are run; the same file, byte for byte, as the coordinator's",
  },
  servers: {
    value: 'URL,URL',
    text: 'the NATS servers: nats://host:4222, tls://host:4222 or host:4222 (default port: 4222)',
  },
  cluster: { value: 'NAME', text: 'the name of the cluster, as its coordinator has it' },
  domain: {
    value: 'NAME',
    text: "the JetStream domain that the coordinator's `jetstream.domain` names (default: that of the account)",
  },
  job: {
    value: 'worker|ps',
    text: 'the job of this process: a worker runs functions; a ps (parameter server) runs none, but its loss stops the cluster (default: worker)',
  },
  task: { value: 'N', text: 'the index of the task in that job (default: any free task)' },
  spec: {
    value: 'FILE',
    text: 'a ClusterSpec as JSON; the coordinator refuses this worker if its own ClusterSpec is different (default: none is compared)',
  },
  definition: {
    value: 'TEXT',
    text: "the version of the program, such as a git hash; compared with the coordinator's `definition` instead of the module files (default: the module files are compared)",
  },
  slots: {
    value: 'N',
    text: 'the number of worker threads, and so how many functions run at the same time (default: the number of processors)',
  },
  recycle: {
    value: 'TEXT',
    text: 'when a thread is replaced, between functions: tasks=N, after N of them; heapMb=N, after one that leaves its heap larger; or both, joined by a comma (default: never)',
  },
  setup: {
    value: 'NAME',
    text: "an export that each thread calls before it takes functions (default: the coordinator's `setup`)",
  },
  teardown: {
    value: 'NAME',
    text: "an export that each thread calls after its last function (default: the coordinator's `teardown`)",
  },
  resources: {
    value: 'LIST',
    text: 'what this worker has, for functions that need it: gpu=1,licence=2 (default: nothing)',
  },
  health: {
    value: 'PORT',
    text: 'serves GET /livez, /readyz and /metrics (Prometheus) at this port (default: none)',
  },
  output: {
    value: 'PAGE',
    short: 'o',
    text: 'the file to write; one that exists is replaced',
  },
  exercise: { value: 'SCRIPT', text: 'the ES module that uses the addon' },
  template: { value: 'cpp|c|cmake|rust', text: 'what the addon is written in (default: cpp)' },
  runtimes: {
    value: 'LIST',
    text: 'the runtimes to try: names on the PATH, or paths, separated by commas: node,bun,/opt/node-22/bin/node (default: the one that runs this command, and node, bun and deno of the PATH)',
  },
  timeout: {
    value: 'SECONDS',
    text: 'a case that takes longer has hung; up to 3600 (default: 30)',
  },
  verbose: {
    text: 'also lists what is peculiar to this runtime, and what to do about it (default: only how many notes there are)',
  },
  json: {
    text: 'prints JSON: the result as one line, or a line for each event (default: text)',
  },
  help: { short: 'h', text: 'prints this text; after a command, the help of that command' },
  version: { short: 'v', text: 'prints the version of the package' },
};

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
  /** The options that must be given. */
  required?: readonly Exclude<keyof Options, 'json'>[];
  /** The options that may be given, besides `--json`, which every command takes. */
  options: readonly Exclude<keyof Options, 'json'>[];
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

/** The message does not quote what was given. */
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

/** Reads the text of a JSON file, which some editors begin with a byte order mark. */
export const parseJson = (text: string): unknown => JSON.parse(text.replace(/^\ufeff/, ''));

/** What Node says when the working directory was deleted. */
export const NO_FOLDER: RegExp = /uv_cwd/;
export const GONE: string = 'the working directory of this process was deleted';
export const GO_ELSEWHERE: string =
  'go to a folder that exists (cd), and start the command there again';

/** What ends a command, which then ends its child processes: the terminal may have been closed, too. */
export const ENDING_SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

/**
 * The result of `work`, which `end` ends at a signal.
 *
 * @throws (rejects) CommandError: a signal has ended this process
 */
export async function untilSignal<T>(
  end: (signal: NodeJS.Signals) => void,
  work: () => Promise<T>,
): Promise<T> {
  let endedBy: NodeJS.Signals | undefined;
  const hear = (signal: NodeJS.Signals): void => {
    endedBy = signal;
    end(signal);
  };
  for (const signal of ENDING_SIGNALS) process.on(signal, hear);
  try {
    const result = await work();
    if (endedBy === undefined) return result;
    throw new CommandError(`ended by ${endedBy}`, 128 + constants.signals[endedBy]);
  } finally {
    for (const signal of ENDING_SIGNALS) process.off(signal, hear);
  }
}

// Tables of the commands' output.

const GAP = '  ';
const widthOf = (cell = ''): number => stripVTControlCharacters(cell).length;

/**
 * Without frames, because people paste this text into mails and tickets. Where the columns, without
 * the last one, leave no room in the terminal, the table becomes a list: a line for each cell. Long
 * lines are broken by who prints them (`fitTerminal`).
 */
export function tableOf(head: string[], rows: string[][]): string {
  const widths = head.map((_, at) => Math.max(...[head, ...rows].map((row) => widthOf(row[at]))));
  const lines = [head, ...rows].map((row) =>
    row
      .map((cell, at) => cell + ' '.repeat((widths[at] ?? 0) - widthOf(cell)))
      .join(GAP)
      .trimEnd(),
  );
  const indent = widths.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0);
  const fits = indent + Math.min(widths.at(-1) ?? 0, 20) <= columns();
  return fits || !process.stdout.isTTY ? lines.join('\n') : listOf(head, rows);
}

function listOf(head: string[], rows: string[][]): string {
  const lines = rows.map(([first = '', ...cells]) => [
    first,
    ...cells.map((cell, at) => GAP + `${head[at + 1] ?? ''} ${cell}`.trim()),
  ]);
  return [head[0] ?? '', ...lines.flat()].join('\n');
}
