// The map of the house: what the first lines of each file say.
//   map.mjs [WORD...]   prints each file of lib/ and native/ with the first sentence of its header, and
//                       of each part of it that has a heading (a comment between blank lines); with
//                       words, the files and parts whose heading or path has all of them
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');

/** The comment at the top of a file, without its stars; '' if there is none. */
function headerOf(source) {
  const text = source.replace(/^#!.*\n/, '').trimStart();
  const block = /^\/\*\*?([^]*?)\*\//.exec(text)?.[1]?.replaceAll(/^ *\* ?/gm, '');
  const lines = /^(?:\/\/.*\n)+/.exec(text)?.[0].replaceAll(/^\/\/ ?/gm, '');
  return (block ?? lines ?? '')
    .replaceAll(/^\/ ?/gm, '')
    .replace(/^\s*@file \S+/, '')
    .trim();
}

/** The headings of the parts of a file: line comments between blank lines. */
const headingsOf = (source) =>
  [...source.matchAll(/\n\n((?:\/\/ .*\n|\/\/\n)+)(?=\n)/g)]
    .map(([, heading]) => heading.replaceAll(/^\/\/ ?/gm, '').trim())
    .filter((heading) => /^[A-Z*`]/.test(heading));

const firstSentence = (header) => /^[^]*?\.(?=\s|$)/.exec(header)?.[0] ?? header;

const words = process.argv.slice(2).map((word) => word.toLowerCase());
const files = ['lib', 'native']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true }).map((name) => posix.join(folder, name)),
  )
  .filter((file) => /\.(?:ts|cc|h|hpp)$/.test(file))
  .toSorted((one, other) => dirname(one).localeCompare(dirname(other)) || one.localeCompare(other));

let room = '';
process.stdout.on('error', () => process.exit()); // map.mjs | head
for (const file of files) {
  const source = readFileSync(join(root, file), 'utf8');
  const found = [headerOf(source), ...headingsOf(source)].filter((heading) => {
    const searched = `${file}\n${heading}`.toLowerCase();
    return heading !== '' && words.every((word) => searched.includes(word));
  });
  for (const [index, heading] of found.entries()) {
    if (dirname(file) !== room) process.stdout.write(`\n${(room = dirname(file))}\n`);
    const sentence = firstSentence(heading).replaceAll(/\s+/g, ' ');
    process.stdout.write(`  ${(index > 0 ? '' : posix.basename(file)).padEnd(28)} ${sentence}\n`);
  }
}
