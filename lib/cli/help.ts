/** The texts of `allstop help` and `allstop <command> --help`, and what a wrong usage is told. */

import { nearest } from '../base/arguments.ts';
import type { Command } from './base/command.ts';
import { type Flag, optionTexts, writtenAs } from './base/options.ts';
import {
  definitions,
  type Output,
  paragraphs,
  proseWidth,
  shellExample,
  wrapped,
} from './base/text-width.ts';

const optionList = (flags: readonly Flag[], width: number): string =>
  definitions(
    flags.map((flag) => [writtenAs(flag), optionTexts[flag].text]),
    width,
  );

const MORE =
  "'allstop help <command>' prints what a command does, its options and examples. " +
  "The documents are in the package's folder: docs/index.md lists them.";

/** The help of `allstop`. */
export function overview(commands: ReadonlyMap<string, Command>, output: Output): string {
  const width = proseWidth(output);
  const list = definitions(
    [...commands].map(([name, { summary }]) => [name, summary]),
    width,
  );
  return `Usage: allstop <command> [--json]

Commands:
${list}
Options:
${optionList(['json', 'help', 'version'], width)}
${paragraphs(MORE, width)}
`;
}

function usageLine(name: string, command: Command, width: number): string {
  const { argument, argumentIsOptional = false, options, required = [] } = command;
  const flags = [...options, 'json' as const].map((flag) =>
    required.some((each) => each === flag) ? writtenAs(flag) : `[${writtenAs(flag)}]`,
  );
  const own = argument === undefined ? [] : [argumentIsOptional ? `[${argument}]` : argument];
  // A no-break space keeps each option with its value.
  const parts = [...own, ...flags].map((part) => part.replaceAll(' ', '\u00A0'));
  const lines = wrapped(`Usage: allstop ${name} ${parts.join(' ')}`, width - 4);
  return lines.join('\n    ').replaceAll('\u00A0', ' ');
}

/** What a wrong use of one command is told besides its message: how the command is written. */
export function shortHelpOf(name: string, command: Command, output: Output): string {
  const width = proseWidth(output);
  const options = `Options:\n${optionList([...command.options, 'json', 'help'], width).trimEnd()}`;
  const more = `allstop help ${name} shows examples.`;
  return `${[usageLine(name, command, width), options, more].join('\n\n')}\n`;
}

/** The help of one command. */
export function helpOf(name: string, command: Command, output: Output): string {
  const { help, examples, environment = [], options } = command;
  const width = proseWidth(output);
  const sections = [
    usageLine(name, command, width),
    paragraphs(help, width),
    `Options:\n${optionList([...options, 'json', 'help'], width).trimEnd()}`,
  ];
  if (environment.length > 0) {
    sections.push(`Environment:\n${definitions(environment, width).trimEnd()}`);
  }
  if (examples.length > 0) {
    const lines = examples.map((example) => shellExample(example, width));
    sections.push(['Examples:', ...lines].join('\n'));
  }
  return `${sections.join('\n\n')}\n`;
}

/** What other programs call an option of ours. */
const OTHER_NAMES: ReadonlyMap<string, Flag> = new Map<string, Flag>([
  ['threads', 'slots'],
  ['concurrency', 'slots'],
  ['index', 'task'],
  ['server', 'servers'],
  ['name', 'cluster'],
]);

/** Credentials are never options: every user of a machine can read these. */
const CREDENTIALS: ReadonlyMap<string, string> = new Map([
  ['user', 'ALLSTOP_NATS_USER'],
  ['username', 'ALLSTOP_NATS_USER'],
  ['pass', 'ALLSTOP_NATS_PASS'],
  ['password', 'ALLSTOP_NATS_PASS'],
  ['token', 'ALLSTOP_NATS_TOKEN'],
  ['nkey', 'ALLSTOP_NATS_NKEY'],
  ['creds', 'ALLSTOP_NATS_CREDS'],
]);

/** "Unknown command 'doctr'. Did you mean 'doctor'?" */
export function unknownCommand(name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  const what = meant === undefined ? "'allstop help' lists them" : `Did you mean '${meant}'?`;
  return `Unknown command '${name}'. ${what}`;
}

/** `name`, as it was written: `--sever`. `known`: the options of the command. */
export function unknownOption(
  name: string,
  known: readonly Flag[],
  command: string | undefined,
): string {
  const what =
    command === undefined
      ? `Without a command there is no option '${name}'.`
      : `'${command}' does not take the option '${name}'.`;
  const bare = name.replace(/^-+/, '');
  const variable = known.includes('servers') ? CREDENTIALS.get(bare) : undefined;
  if (variable !== undefined) return `${what} Set the environment variable ${variable}`;
  const other = OTHER_NAMES.get(bare);
  const meant = other !== undefined && known.includes(other) ? other : nearest(bare, known);
  return meant === undefined ? what : `${what} Did you mean '--${meant}'?`;
}
