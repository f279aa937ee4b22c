/**
 * Reads the command line of `npx allstop`. This file loads neither the addon nor the rest of the
 * library; a command that needs them imports them itself.
 */

import { parseArgs } from 'node:util';
import { type Command, type Options, UsageError } from './base/command.ts';
import { version } from './base/version.ts';
import { build } from './build.ts';
import { cmake } from './cmake.ts';
import { doctor } from './doctor.ts';
import { include } from './include.ts';
import { timeline } from './timeline.ts';
import { worker } from './worker.ts';

const commands = new Map<string, Command>(
  Object.entries({ include, cmake, doctor, build, worker, timeline }),
);

/** Each option as it is written, with its value, and what it means, in one line or more. */
const optionTexts = {
  relative: [
    '--relative',
    'prints the path relative to the working directory: for binding.gyp,',
    'because node-gyp cannot handle an absolute path that contains a space',
  ],
  module: [
    '--module FILE',
    'the module whose exported functions are run; the same file, byte',
    "for byte, as the coordinator's",
  ],
  servers: ['--servers URL,URL', 'the NATS servers: nats://host:4222 or tls://host:4222'],
  cluster: ['--cluster NAME', 'the name of the cluster, as its coordinator has it'],
  job: [
    '--job worker|ps',
    'the job of this process: a worker runs functions; a ps (parameter',
    'server) runs none, but its loss stops the cluster (default: worker)',
  ],
  task: ['--task N', 'the index of the task in that job (default: any free task)'],
  spec: [
    '--spec FILE',
    'a ClusterSpec as JSON; the coordinator refuses this worker if its',
    'own ClusterSpec is different',
  ],
  definition: [
    '--definition TEXT',
    'the version of the program, such as a git hash; compared with the',
    "coordinator's `definition` instead of the module files",
  ],
  slots: [
    '--slots N',
    'the number of worker threads, and so how many functions run at the',
    'same time (default: the number of processors)',
  ],
  setup: [
    '--setup NAME',
    'an export that each thread calls before it takes functions, instead',
    "of the coordinator's `setup`",
  ],
  teardown: [
    '--teardown NAME',
    'an export that each thread calls after its last function, instead',
    "of the coordinator's `teardown`",
  ],
  output: ['-o, --output PAGE', 'the file to write; one that exists is replaced'],
  json: ['--json', 'prints the result as one line of JSON'],
  help: ['--help', 'prints this text; after a command, the help of that command'],
  version: ['--version', 'prints the version of the package'],
} as const;

/** The text of `--help` about the options `flags`: the options and their meanings, in columns. */
function optionList(flags: readonly (keyof typeof optionTexts)[]): string {
  const texts = flags.map((flag) => optionTexts[flag]);
  const width = Math.max(...texts.map(([option]) => option.length));
  return texts
    .flatMap(([option, ...lines]) =>
      lines.map((line, at) => `  ${(at === 0 ? option : '').padEnd(width)}  ${line}\n`),
    )
    .join('');
}

export const usage: string = `Usage: allstop <command> [--json]

Commands:
${[...commands].map(([name, { summary }]) => `  ${name.padEnd(10)} ${summary}`).join('\n')}

Options:
${optionList(['json', 'help', 'version'])}`;

function helpOf(name: string, { help, argument, options, required = [] }: Command): string {
  const flags = [...options, 'json' as const];
  const usageOf = (flag: (typeof flags)[number]): string => {
    const [option] = optionTexts[flag];
    return required.some((each) => each === flag) ? option : `[${option}]`;
  };
  return `Usage: allstop ${name} ${argument === undefined ? '' : `${argument} `}${flags.map(usageOf).join(' ')}

${help}

Options:
${optionList(flags)}`;
}

/** parseArgs would use the last of several equal options and silently ignore the others. */
function refuseRepeated(tokens: readonly { kind: string; name?: string }[]): void {
  const seen = new Set<string>();
  for (const { kind, name } of tokens) {
    if (kind !== 'option' || name === undefined) continue;
    if (seen.has(name)) throw new Error(`--${name} is given more than once`);
    seen.add(name);
  }
}

function parse(args: string[]) {
  try {
    const parsed = parseArgs({
      args,
      allowPositionals: true,
      tokens: true,
      options: {
        json: { type: 'boolean' },
        relative: { type: 'boolean' },
        module: { type: 'string' },
        servers: { type: 'string' },
        cluster: { type: 'string' },
        job: { type: 'string' },
        task: { type: 'string' },
        spec: { type: 'string' },
        definition: { type: 'string' },
        slots: { type: 'string' },
        setup: { type: 'string' },
        teardown: { type: 'string' },
        output: { type: 'string', short: 'o' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean', short: 'v' },
      },
    });
    refuseRepeated(parsed.tokens);
    return parsed;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** What the command line asks for: a text at once (help, the version), or a command. */
export type Request =
  | { text: string }
  | { command: Command; options: Options; argument: string | undefined };

/** Reads the arguments, and does nothing else. @throws UsageError */
export function readCommandLine(args: string[]): Request {
  const { values, positionals } = parse(args);
  const { json, help, version: wantsVersion, ...options } = values;
  if (wantsVersion) return { text: `${version}\n` };
  const [name, ...rest] = positionals;
  if (name === undefined) {
    if (help) return { text: usage };
    throw new UsageError('Command missing');
  }
  const command = commands.get(name);
  if (command === undefined) throw new UsageError(`Unknown command '${name}'`);
  if (help) return { text: helpOf(name, command) };
  const surplus = command.argument === undefined ? rest[0] : rest[1];
  if (surplus !== undefined) {
    const taken = command.argument === undefined ? 'no arguments' : `one ${command.argument}`;
    throw new UsageError(`'${name}' takes ${taken}, but got '${surplus}'`);
  }
  for (const option of Object.keys(options) as (keyof typeof options)[]) {
    if (!command.options.includes(option)) {
      throw new UsageError(`'${name}' does not take the option '--${option}'`);
    }
  }
  return { command, options: { ...options, json }, argument: rest[0] };
}
