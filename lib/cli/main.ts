/**
 * Reads the command line of `npx allstop`. This file loads neither the addon nor the rest of the
 * library; a command that needs them imports them itself.
 */

import { parseArgs } from 'node:util';
import { type Command, type Options, refuseCredentials, UsageError } from './base/command.ts';
import { type Flag, optionTexts } from './base/options.ts';
import { version } from './base/version.ts';
import { build } from './build.ts';
import { checkAddon } from './check-addon.ts';
import { cmake } from './cmake.ts';
import { completionOf } from './completion.ts';
import { demo } from './demo.ts';
import { doctor } from './doctor.ts';
import { helpOf, overview, shortHelpOf, unknownCommand, unknownOption } from './help.ts';
import { include } from './include.ts';
import { timeline } from './timeline.ts';
import { worker } from './worker.ts';

const commands: Map<string, Command> = new Map<string, Command>(
  Object.entries({
    demo,
    include,
    cmake,
    doctor,
    build,
    worker,
    timeline,
    'check-addon': checkAddon,
  }),
);
commands.set(
  'completion',
  completionOf(() => commands),
);
commands.set('help', {
  summary: 'prints what a command does, its options and examples',
  help: 'Prints what a command does, its options and examples; without COMMAND, all commands.',
  examples: ['npx allstop help worker'],
  argument: 'COMMAND',
  argumentIsOptional: true,
  argumentChoices: () => [...commands.keys()],
  options: [],
  run: ({ argument }) => {
    if (argument === undefined) return asHelp(overview(commands, process.stdout));
    return asHelp(helpOf(argument, found(argument), process.stdout));
  },
});

const asHelp = (text: string): { text: string; json: { help: string } } => ({
  text,
  json: { help: text },
});

/** @throws UsageError */
function found(name: string): Command {
  const command = commands.get(name);
  if (command !== undefined) return command;
  refuseCredentials(name, true);
  throw new UsageError(unknownCommand(name, [...commands.keys()]));
}

const FLAGS = Object.keys(optionTexts) as Flag[];

/** The name of the command in `args`: the first word that is neither an option nor its value. */
function commandIn(args: readonly string[]): string | undefined {
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as string;
    if (!arg.startsWith('-')) return arg;
    const flag = FLAGS.find((each) => arg === `--${each}` || arg === `-${optionTexts[each].short}`);
    if (flag !== undefined && optionTexts[flag].value !== undefined) at++;
  }
  return undefined;
}

/** The help that goes to stderr with a UsageError: of the command that `args` name, if any. */
export function helpFor(args: readonly string[]): string {
  const name = commandIn(args);
  const command = name === undefined ? undefined : commands.get(name);
  return command === undefined || name === 'help'
    ? overview(commands, process.stderr)
    : shortHelpOf(name as string, command, process.stderr);
}

type Token = ReturnType<typeof tokensOf>[number];

/** Splits the arguments, and refuses none of them. */
function tokensOf(args: string[]) {
  const options = Object.fromEntries(
    FLAGS.map((flag) => {
      const { value, short } = optionTexts[flag];
      const type = value === undefined ? ('boolean' as const) : ('string' as const);
      return [flag, short === undefined ? { type } : { type, short }];
    }),
  );
  return parseArgs({ args, options, allowPositionals: true, strict: false, tokens: true }).tokens;
}

/** The value of the option that `token` is. @throws UsageError */
function valueOf(token: Token & { kind: 'option' }, command: string | undefined): string | true {
  const { rawName, value } = token;
  const flag = FLAGS.find((each) => each === token.name);
  const own = command === undefined ? undefined : commands.get(command);
  const known: Flag[] =
    own === undefined ? ['json', 'help', 'version'] : [...own.options, 'json', 'help', 'version'];
  if (flag === undefined || !known.includes(flag)) {
    throw new UsageError(unknownOption(rawName, known, command));
  }
  const { value: wanted } = optionTexts[flag];
  if (wanted === undefined) {
    if (value === undefined) return true;
    throw new UsageError(`'${rawName}' takes no value, but got '${value}'`);
  }
  if (value === undefined) throw new UsageError(`'${rawName}' needs a value: ${rawName} ${wanted}`);
  // A forgotten value would otherwise be the next option's name.
  if (!token.inlineValue && value.startsWith('-')) {
    throw new UsageError(
      `'${rawName}' needs a value, but is followed by '${value}'. If that is the value, write ${rawName}=${value}`,
    );
  }
  return value;
}

/** What the command line asks for: a text at once (help, the version), or a command. */
export type Request =
  | { text: string; json: unknown; isJson: boolean }
  | { command: Command; options: Options; argument: string | undefined };

/** Reads the arguments, and does nothing else. @throws UsageError */
export function readCommandLine(args: string[]): Request {
  const tokens = tokensOf(args);
  for (const token of tokens) {
    if (token.kind === 'positional') refuseCredentials(token.value);
    if (token.kind === 'option') refuseCredentials(token.value ?? token.rawName);
  }
  const [name, ...rest] = tokens.flatMap((token) =>
    token.kind === 'positional' ? token.value : [],
  );
  const command = name === undefined ? undefined : found(name);
  const values: Record<string, string | true> = {};
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const value = valueOf(token, name);
    // The last of several equal options would silently count.
    if (Object.hasOwn(values, token.name)) {
      throw new UsageError(`--${token.name} is given more than once`);
    }
    values[token.name] = value;
  }
  const { help, version: wantsVersion, ...options } = values;
  const isJson = options['json'] === true;
  if (wantsVersion) return { text: `${version}\n`, json: { version }, isJson };
  if (name === undefined || command === undefined) {
    if (help) return { ...asHelp(overview(commands, process.stdout)), isJson };
    throw new UsageError('Command missing');
  }
  if (help) return { ...asHelp(helpOf(name, command, process.stdout)), isJson };
  const surplus = command.argument === undefined ? rest[0] : rest[1];
  if (surplus !== undefined) {
    refuseCredentials(surplus, true);
    const taken = command.argument === undefined ? 'no arguments' : `one ${command.argument}`;
    const isModule = command.options.includes('module') && options['module'] === undefined;
    const meant = isModule ? `. Did you mean --module ${surplus}?` : '';
    throw new UsageError(`'${name}' takes ${taken}, but got '${surplus}'${meant}`);
  }
  const [argument] = rest;
  const lacking = [
    ...(argument === undefined && command.argument !== undefined && !command.argumentIsOptional
      ? [command.argument]
      : []),
    ...(command.required ?? []).flatMap((flag) =>
      options[flag] === undefined || options[flag] === '' ? [`--${flag}`] : [],
    ),
  ];
  if (lacking.length > 0) throw new UsageError(`'${name}' needs ${lacking.join(', ')}`);
  return { command, options: options as Options, argument };
}
