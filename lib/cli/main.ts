#!/usr/bin/env node
/**
 * `npx allstop`: where the package is, for the builds of native addons. It loads
 * neither the addon nor the rest of the library, so that it works where no binary does.
 */

import { readFileSync } from 'node:fs';
import { relative, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { cmake } from './cmake.ts';
import { include } from './include.ts';

const commands = new Map(Object.entries({ include, cmake }));

const usage = `Usage: allstop <command> [--relative] [--json]

Commands:
${[...commands].map(([name, { summary }]) => `  ${name.padEnd(10)} prints ${summary}`).join('\n')}

Options:
  --relative  as seen from the working directory: for binding.gyp, since node-gyp
              cannot take an absolute path with a space in it
  --json      prints a JSON object, by the name of the command
  --help      prints this
  --version   prints the version of the package
`;

function version(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

/**
 * What to print.
 *
 * @throws Error: wrong usage
 */
function run(args: string[]): string {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      json: { type: 'boolean' },
      relative: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean', short: 'v' },
    },
  });
  if (values.help) return usage;
  if (values.version) return `${version()}\n`;
  const [name, ...rest] = positionals;
  if (name === undefined) throw new Error('A command is missing');
  const command = commands.get(name);
  if (command === undefined) throw new Error(`There is no command '${name}'`);
  if (rest.length > 0) throw new Error(`'${name}' takes no argument`);
  // gyp and CMake take a backslash for the start of an escape.
  const absolute = command.folder();
  const folder = (values.relative ? relative('.', absolute) : absolute).split(sep).join('/');
  return `${values.json ? JSON.stringify({ [name]: folder }) : folder}\n`;
}

try {
  process.stdout.write(run(process.argv.slice(2)));
} catch (error) {
  process.stderr.write(`allstop: ${(error as Error).message}\n\n${usage}`);
  process.exitCode = 2;
}
