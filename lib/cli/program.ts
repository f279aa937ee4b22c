#!/usr/bin/env node

/** `npx allstop`: runs the command that the command line asks for, and prints its result. */

import {
  CommanderError,
  Help,
  Option,
  Command as Program,
  InvalidArgumentError as WrongValue,
} from 'commander';
import { codeOf, messageOf } from '../base/thrown-value.ts';
import { fitTerminal, printable } from '../coordinator/words.ts';
import {
  type Command,
  CommandError,
  type CommandResult,
  CREDENTIALS_GIVEN,
  columns,
  type Flag,
  GO_ELSEWHERE,
  GONE,
  NO_FOLDER,
  type Options,
  type OptionText,
  optionTexts,
  UsageError,
  version,
} from './base/command.ts';
import { commands } from './commands.ts';

// Reads the command line of `npx allstop`, with commander. This file loads neither the addon nor the
// rest of the library; a command that needs them imports them itself.

/** What other programs call an option of ours. */
const OTHER_NAMES: ReadonlyMap<string, Flag> = new Map<string, Flag>([
  ['threads', 'slots'],
  ['concurrency', 'slots'],
  ['index', 'task'],
  ['server', 'servers'],
  ['name', 'cluster'],
]);

/** The value of an option, which stands once. @throws WrongValue */
function readValue(value: string, previous: unknown): string {
  if (previous !== undefined) throw new WrongValue('The option is given more than once.');
  if (value === '') throw new WrongValue('The value is empty.');
  // A forgotten value would otherwise be the next option's name.
  if (value.startsWith('--')) throw new WrongValue('It is an option: is a value missing?');
  return value;
}

function optionOf(flag: Flag): Option {
  const { value, short, text }: OptionText = optionTexts[flag];
  const names = short === undefined ? `--${flag}` : `-${short}, --${flag}`;
  if (value === undefined) return new Option(names, text);
  return new Option(`${names} <${value}>`, text).argParser(readValue);
}

/** Longer lines of prose are hard to read, however wide the terminal is. */
const proseWidth = (): number => Math.min(columns(), 100);

/** The examples and the environment of a command, after commander's own help. */
function rest({ environment = [], examples }: Command, program: Program): string {
  const width = proseWidth();
  const indented = (text: string, indent: string): string =>
    indent +
    program
      .createHelp()
      .boxWrap(text, width - 6)
      .replaceAll('\n', `\n${indent}`);
  // No word of a command is broken, and each option stays with its value.
  const command = (text: string): string =>
    indented(text.replaceAll(/(?<= -[a-z-]+) (?=[^- ])/g, '\0'), '    ')
      .replaceAll('\n', ' \\\n')
      .replaceAll('\0', ' ')
      .slice(2);
  const variables = environment.flatMap(([name, text]) => [
    indented(name, '  '),
    indented(text, '      '),
  ]);
  return [
    ...(variables.length > 0 ? ['\nEnvironment:', ...variables] : []),
    '\nExamples:',
    ...examples.map(command),
  ].join('\n');
}

/**
 * Paragraphs, which blank lines separate, as one line each: commander wraps them. A line that begins
 * with two spaces stays a line.
 */
const unwrapped = (text: string): string => text.replaceAll(/(?<!\n)\n(?!\n| {2})/g, ' ');

/** How the command is used, in short; where none was named, the whole help. */
function usageOf(program: Program): string {
  const help = program.helpInformation();
  if (program.parent === null) return help;
  return `${help.split('\n\n', 1)[0]}\nAll options: allstop help ${program.name()}\n`;
}

const UNKNOWN_WITH_VALUE = /^error: unknown option '(--[^'=]+(?==)|-[^-](?=[^']))/;

/** What commander's message says, and what a user of this program may have meant. */
function explained(error: CommanderError, program: Program): string {
  if (error.code === 'commander.help') return 'command missing';
  // Neither is the value of an unknown option printed, nor does it hide the option that was meant.
  const [, name] = UNKNOWN_WITH_VALUE.exec(error.message) ?? [];
  if (name !== undefined) program.parse([name], { from: 'user' });
  const said = error.message.replace(/^error: /, '').replace('\n', ' ');
  if (program.args.some((arg) => CREDENTIAL.test(arg))) return CREDENTIALS_GIVEN;
  const option = /^unknown option '--([^'=]+)/.exec(said)?.[1];
  const own = (flag: string): boolean => program.options.some(({ long }) => long === `--${flag}`);
  if (option !== undefined) {
    const variable = own('servers') ? CREDENTIAL_VARIABLES.get(option) : undefined;
    if (variable !== undefined) return `${said}. Set the environment variable ${variable}`;
    const meant = OTHER_NAMES.get(option);
    if (meant !== undefined && own(meant)) return `${said} (Did you mean --${meant}?)`;
  }
  const [surplus] = program.args;
  const isModule = error.code === 'commander.excessArguments' && own('module');
  return isModule && surplus !== undefined ? `${said} Did you mean --module ${surplus}?` : said;
}

/** What looks like a URL with a user, a password or a token: `nats://user:pass@host`. */
const CREDENTIAL_URL = /^(?!file:)[^/\\]*:\/\/[^/]*@/i;
/** The same, also without the scheme, or with a slash in the password: for a word that no command takes. */
const CREDENTIAL = /^(?!file:)(?:[^/\\]+:\/\/.*|[^/\\]+)@/i;

/** Credentials are never options: every user of a machine can read these. */
const CREDENTIAL_VARIABLES: ReadonlyMap<string, string> = new Map([
  ['user', 'ALLSTOP_NATS_USER'],
  ['username', 'ALLSTOP_NATS_USER'],
  ['pass', 'ALLSTOP_NATS_PASS'],
  ['password', 'ALLSTOP_NATS_PASS'],
  ['token', 'ALLSTOP_NATS_TOKEN'],
  ['nkey', 'ALLSTOP_NATS_NKEY'],
  ['creds', 'ALLSTOP_NATS_CREDS'],
]);

/** What commander would end the process for: a text that was asked for, or a wrong usage. */
class Said extends Error {}

/** The name of the command. */
const nameIn = (args: readonly string[]): string | undefined =>
  args.find((arg) => !arg.startsWith('-'));

/**
 * Reads the arguments and runs the command that they name.
 *
 * @throws UsageError, CommandError
 */
async function runCommandLine(args: readonly string[]): Promise<CommandResult> {
  let printed = '';
  let outcome: CommandResult | undefined;
  const isJson = args.includes('--json');

  function prepare(program: Program): Program {
    return program
      .configureOutput({
        writeOut: (text) => (printed += text),
        writeErr: () => {},
        getOutHelpWidth: proseWidth,
      })
      .configureHelp({
        minWidthToWrap: 10,
        formatItem(this: Help, term, termWidth, description, helper) {
          const width = this.helpWidth ?? 80;
          if (width - termWidth >= 28) {
            return Help.prototype.formatItem.call(this, term, termWidth, description, helper);
          }
          const below = this.boxWrap(description, width - 6).replaceAll('\n', '\n      ');
          return `  ${term}\n      ${below}`;
        },
        subcommandTerm: (each) => each.name(),
        styleUsage(this: Help, usage) {
          const width = (this.helpWidth ?? 80) - 'Usage: '.length;
          return this.boxWrap(usage, width).replaceAll('\n', '\n    ');
        },
      })
      .helpOption('-h, --help', optionTexts.help.text)
      .addOption(optionOf('json'))
      .exitOverride((error) => {
        if (error.exitCode === 0) throw new Said();
        throw new UsageError(explained(error, program), usageOf(program));
      });
  }

  const program = prepare(new Program('allstop'))
    .description('Stops a whole program at once, for one reason.')
    .usage('<command> [options]')
    .version(version, '-v, --version', optionTexts.version.text)
    .addHelpText('after', '\nDocuments: docs/index.md of the package.')
    .helpCommand(false);
  for (const [name, command] of Object.entries(commands)) {
    const { summary, help, argument, options, required = [] } = command;
    const own: Program = prepare(program.command(name))
      .summary(summary)
      .description(unwrapped(help))
      .usage([argument ?? [], required.map(written), '[options]'].flat().join(' '))
      .addHelpText('after', () => rest(command, own));
    for (const flag of [...required, ...options]) own.addOption(optionOf(flag));
    if (argument !== undefined) own.argument(`<${argument}>`);
    own.action(async () => {
      const values: Options = own.optsWithGlobals();
      const lacking = required.filter((flag) => values[flag] === undefined);
      if (lacking.length > 0) own.error(`error: '${name}' needs --${lacking.join(', --')}`);
      outcome = await command.run({ ...values, argument: own.args[0] });
    });
  }
  prepare(program.command('help'))
    .summary('prints what a command does, its options and examples')
    .argument('[COMMAND]')
    .action((name?: string): void => {
      const named = program.commands.find((each) => each.name() === name);
      if (name !== undefined && named === undefined) program.parse([name], { from: 'user' });
      (named ?? program).help();
    });

  const named = program.commands.find((each) => each.name() === nameIn(args));
  try {
    if (args.some((arg) => CREDENTIAL_URL.test(arg))) throw new UsageError(CREDENTIALS_GIVEN);
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (error instanceof UsageError && error.usage === undefined) {
      throw new UsageError(error.message, usageOf(named ?? program));
    }
    if (!(error instanceof Said)) throw error;
  }
  const isVersion = args.some((arg) => ['-v', '--version'].includes(arg));
  const asked = { text: printed, json: isVersion ? { version } : { help: printed } };
  const result = outcome ?? asked;
  return isJson ? { ...result, text: `${JSON.stringify(result.json)}\n` } : result;
}

/** The option as the usage shows it. */
function written(flag: Flag): string {
  const { value }: OptionText = optionTexts[flag];
  return `--${flag} ${value}`;
}

/** An error as stderr gets it: of `worker --json` as an event, as all lines there. */
function failure(error: unknown, args: readonly string[]): string {
  const message = messageOf(error);
  const why = NO_FOLDER.test(message) ? `${GONE}\nWhat to do: ${GO_ELSEWHERE}` : message;
  if (nameIn(args) === 'worker' && args.includes('--json')) {
    return `${JSON.stringify({ at: new Date().toISOString(), event: 'failed', why })}\n`;
  }
  const said = fitTerminal(`allstop: ${why}`.split('\n').map(printable));
  return error instanceof UsageError ? `${said}\n${error.usage}` : `${said}\n`;
}

// A program that read our output through a pipe may have ended (EPIPE): that must neither end a
// worker nor change the exit code.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

const args = process.argv.slice(2);
try {
  const { text, exitCode = 0, lingers } = await runCommandLine(args);
  process.exitCode = exitCode;
  process.stdout.write(text, (error) => {
    // A reader that has ended (`| head`) has what it wanted. A full disk has not.
    if (error && codeOf(error) !== 'EPIPE') {
      process.stderr.write(`allstop: the output could not be written: ${error.message}\n`);
      process.exitCode = 1;
    }
    if (lingers) process.stderr.write('', () => process.exit());
  });
} catch (error) {
  process.stderr.write(failure(error, args));
  process.exitCode =
    error instanceof UsageError ? 2 : error instanceof CommandError ? error.exitCode : 1;
}
