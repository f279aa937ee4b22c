#!/usr/bin/env node
/**
 * `npx allstop`: reads the command line, runs the command, prints what came of it. It
 * loads neither the addon nor the rest of the library: a command that needs them does.
 */

import { parseArgs } from 'node:util';
import { type Command, CommandError, type CommandResult, UsageError } from './base/command.ts';
import { version } from './base/version.ts';
import { build } from './build.ts';
import { cmake } from './cmake.ts';
import { doctor } from './doctor.ts';
import { include } from './include.ts';
import { worker } from './worker.ts';

const commands = new Map<string, Command>(
  Object.entries({ include, cmake, doctor, build, worker }),
);

const optionTexts = {
  relative: `  --relative  as seen from the working directory: for binding.gyp, since node-gyp
              cannot take an absolute path with a space in it
`,
  module: `  --module FILE      whose exports are the functions
`,
  servers: `  --servers URL,URL  nats://host:4222 or tls://host:4222
`,
  cluster: `  --cluster NAME     which cluster
`,
  job: `  --job worker|ps    what it is there (worker)
`,
  task: `  --task N           which of that job's tasks; any that is free, if it is left out
`,
  spec: `  --spec FILE        the cluster's ClusterSpec, as JSON, to be compared with the coordinator's
`,
  slots: `  --slots N          how many functions at once (as many as there are processors)
`,
  json: `  --json      prints a JSON object
`,
};

const usage = `Usage: allstop <command> [--json]

Commands:
${[...commands].map(([name, { summary }]) => `  ${name.padEnd(10)} ${summary}`).join('\n')}

Options:
${optionTexts.json}  --help      prints this; after a command, more of that
  --version   prints the version of the package
`;

function helpOf(name: string, { help, options, required = [] }: Command): string {
  const flags = [...options, 'json' as const];
  const usageOf = (flag: (typeof flags)[number]): string =>
    required.some((each) => each === flag) ? `--${flag}` : `[--${flag}]`;
  return `Usage: allstop ${name} ${flags.map(usageOf).join(' ')}

${help}

Options:
${flags.map((flag) => optionTexts[flag]).join('')}`;
}

/** The last of several would count, and nobody would hear of the others. */
function refuseRepeated(tokens: readonly { kind: string; name?: string }[]): void {
  const seen = new Set<string>();
  for (const { kind, name } of tokens) {
    if (kind !== 'option' || name === undefined) continue;
    if (seen.has(name)) throw new Error(`--${name} is there more than once`);
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
        slots: { type: 'string' },
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

/** @throws UsageError, CommandError */
async function run(
  args: string[],
): Promise<{ text: string; exitCode: number; lingers?: boolean | undefined }> {
  const { values, positionals } = parse(args);
  const { json, help, version: wantsVersion, ...options } = values;
  if (wantsVersion) return { text: `${version}\n`, exitCode: 0 };
  const [name, ...rest] = positionals;
  if (name === undefined) {
    if (help) return { text: usage, exitCode: 0 };
    throw new UsageError('A command is missing');
  }
  const command = commands.get(name);
  if (command === undefined) throw new UsageError(`There is no command '${name}'`);
  if (help) return { text: helpOf(name, command), exitCode: 0 };
  if (rest.length > 0) throw new UsageError(`'${name}' takes no argument`);
  for (const option of Object.keys(options) as (keyof typeof options)[]) {
    if (!command.options.includes(option)) {
      throw new UsageError(`'${name}' takes no option '--${option}'`);
    }
  }
  const outcome: CommandResult = await command.run({ ...options, json });
  const text = json ? `${JSON.stringify(outcome.json)}\n` : outcome.text;
  return { text, exitCode: outcome.exitCode ?? 0, lingers: outcome.lingers };
}

/** Who reads our output may have gone: that ends neither a worker nor what the exit code says. */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}

outliveReaders();
try {
  const { text, exitCode, lingers } = await run(process.argv.slice(2));
  process.exitCode = exitCode;
  process.stdout.write(text, () => {
    if (lingers) process.exit();
  });
} catch (error) {
  const { message } = error as Error;
  if (error instanceof UsageError) {
    process.stderr.write(`allstop: ${message}\n\n${usage}`);
    process.exitCode = 2;
  } else {
    process.stderr.write(`allstop: ${message}\n`);
    process.exitCode = error instanceof CommandError ? error.exitCode : 1;
  }
}
