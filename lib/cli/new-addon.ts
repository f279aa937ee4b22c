/** `allstop new-addon DIR` makes the folder of a native addon whose thread JavaScript stops and joins. */

import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { messageOf } from '../base/thrown-value.ts';
import { root } from '../native/binary/package-files.ts';
import { type Command, CommandError, UsageError, version } from './base/command.ts';

/** The files of each template, relative to the package's folder `templates`: later ones replace earlier ones. */
const TEMPLATES: ReadonlyMap<string, readonly string[]> = new Map([
  ['cpp', ['common', 'cpp']],
  ['c', ['common', 'c']],
  ['cmake', ['common', 'cpp/addon.cc', 'cmake']],
  ['rust', ['common', 'rust']],
]);

/** mkdirSync's own `recursive` tries again for ever where the system says ENOENT, as in /proc. */
function makeWithParents(folder: string): void {
  if (existsSync(folder)) return;
  makeWithParents(dirname(folder));
  mkdirSync(folder);
}

/** Makes the folder, if there is none. @throws CommandError: it is not empty, or cannot be made */
function makeEmpty(folder: string): void {
  let names: string[];
  try {
    makeWithParents(folder);
    names = readdirSync(folder);
  } catch (error) {
    throw new CommandError(`the folder cannot be made: ${messageOf(error)}`);
  }
  if (names.length > 0) {
    throw new CommandError(
      `the folder ${folder} is not empty\nWhat to do: name a folder that is empty, or that does not exist yet`,
    );
  }
}

/** A name that npm accepts. */
const packageName = (folder: string): string =>
  basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+/, '') || 'addon';

function make(folder: string, parts: readonly string[]): void {
  for (const part of parts) {
    const isFile = part.includes('/');
    const to = isFile ? join(folder, basename(part)) : folder;
    cpSync(join(root(), 'templates', part), to, { recursive: true });
  }
  // npm leaves a .gitignore out of a tarball.
  renameSync(join(folder, 'gitignore'), join(folder, '.gitignore'));
  const manifest = join(folder, 'package.json');
  const named = readFileSync(manifest, 'utf8')
    .replace('"name": "addon"', `"name": "${packageName(folder)}"`)
    .replace('"allstop": "*"', `"allstop": "^${version}"`);
  writeFileSync(manifest, named);
}

export const newAddon: Command = {
  summary: 'makes the folder of a native addon whose thread JavaScript joins',
  help: `Makes the folder DIR with a native addon: a thread that a Coordinator stops, and that
JavaScript joins. npm run build compiles the addon, npm start runs a program that uses it, and
npm run check ends workers that use it in every way (allstop check-addon).

The templates: cpp is C++17 with node-addon-api, built by node-gyp; c is C11 on plain Node-API,
built by node-gyp; cmake is C++17, built by cmake-js; rust is a crate on plain Node-API, built by
cargo. The templates c and rust are for POSIX systems.

Exit code: 0 if the folder was made, 1 if DIR is not empty or cannot be made.`,
  examples: ['npx allstop new-addon my-addon', 'npx allstop new-addon my-addon --template rust'],
  argument: 'DIR',
  options: ['template'],
  run: ({ argument = '', template = 'cpp' }) => {
    const parts = TEMPLATES.get(template);
    if (parts === undefined) {
      const names = [...TEMPLATES.keys()].join(', ');
      throw new UsageError(`--template must be one of ${names}, not '${template}'`);
    }
    const folder = resolve(argument);
    makeEmpty(folder);
    make(folder, parts);
    const text = [
      `Made ${folder} (template ${template}). Now:`,
      `  cd ${relative('.', folder) || '.'}`,
      '  npm install',
      '  npm run build',
      '  npm start',
      '  npm run check',
    ];
    return { text: `${text.join('\n')}\n`, json: { 'new-addon': folder, template } };
  },
};
