/** The texts of `allstop help` and `allstop <command> --help`, and what a wrong usage is told. */

import { nearest } from '../base/arguments.ts';
import type { Command } from './base/command.ts';
import { type Flag, optionTexts, writtenAs } from './base/options.ts';
import { definitions, paragraphs, proseWidth, shellExample, wrapped } from './base/text-width.ts';

const optionList = (flags: readonly Flag[]): string =>
  definitions(
    flags.map((flag) => [writtenAs(flag), optionTexts[flag].text]),
    proseWidth(),
  );

/** The help of `allstop`. */
export function overview(commands: ReadonlyMap<string, Command>): string {
  const list = definitions(
    [...commands].map(([name, { summary }]) => [name, summary]),
    proseWidth(),
  );
  return `Usage: allstop <command> [--json]

Commands:
${list}
Options:
${optionList(['json', 'help', 'version'])}
${paragraphs("'allstop help <command>' prints what a command does, its options and examples.", proseWidth())}
`;
}

function usageLine(name: string, command: Command): string {
  const { argument, argumentIsOptional = false, options, required = [] } = command;
  const flags = [...options, 'json' as const].map((flag) =>
    required.some((each) => each === flag) ? writtenAs(flag) : `[${writtenAs(flag)}]`,
  );
  const own = argument === undefined ? [] : [argumentIsOptional ? `[${argument}]` : argument];
  // A no-break space keeps each option with its value.
  const parts = [...own, ...flags].map((part) => part.replaceAll(' ', '\u00A0'));
  const lines = wrapped(`Usage: allstop ${name} ${parts.join(' ')}`, proseWidth() - 4);
  return lines.join('\n    ').replaceAll('\u00A0', ' ');
}

/** The help of one command. */
export function helpOf(name: string, command: Command): string {
  const { help, examples, environment = [], options } = command;
  const sections = [
    usageLine(name, command),
    paragraphs(help, proseWidth()),
    `Options:\n${optionList([...options, 'json', 'help']).trimEnd()}`,
  ];
  if (environment.length > 0) {
    sections.push(`Environment:\n${definitions(environment, proseWidth()).trimEnd()}`);
  }
  if (examples.length > 0) {
    const lines = examples.map((example) => shellExample(example, proseWidth()));
    sections.push(['Examples:', ...lines].join('\n'));
  }
  return `${sections.join('\n\n')}\n`;
}

/** "Unknown command 'doctr'. Did you mean 'doctor'?" */
export const unknownCommand = (name: string, known: readonly string[]): string =>
  `Unknown command '${name}'. Did you mean '${nearest(name, known)}'?`;

/** `name`, as it was written: `--sever`. `known`: the options of the command. */
export function unknownOption(
  name: string,
  known: readonly Flag[],
  command: string | undefined,
): string {
  const where = command === undefined ? 'allstop' : `'${command}'`;
  const meant = nearest(name.replace(/^-+/, ''), known);
  return `${where} does not take the option '${name}'. Did you mean '--${meant}'?`;
}
