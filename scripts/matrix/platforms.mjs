// Writes the results of the matrix into docs/platforms.md, and the platforms into docs/installing.md.
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { fileOf, targets } from '../targets.mjs';
import { notRun } from './runtimes.mjs';

const NEEDS = {
  glibc: 'glibc 2.17 or later',
  musl: 'musl 1.2 or later',
  win32: 'Windows 10 or later',
  darwin: 'macOS 11 or later',
};
const needs = ({ platform, libc }) => NEEDS[libc ?? platform];

const markdown = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

/** The runtimes that were run on a target: "Node 20, 22 (qemu-user)". */
function runOn(target, results) {
  const here = results.filter(({ runtime }) => runtime.target === target.name);
  const groups = new Map();
  for (const { runtime, outcomes } of here) {
    const all = [...outcomes.values()].filter(({ outcome }) => outcome !== 'not run');
    const fine = all.every(({ outcome }) => outcome === 'ok');
    const how = `${runtime.through ? ` (${runtime.through})` : ''}${fine ? '' : ', with failures'}`;
    groups.set(how, [...(groups.get(how) ?? []), runtime.name]);
  }
  const named = [...groups].map(([how, names]) => `${names.join(', ')}${how}`);
  return (
    named.join('; ').replaceAll(/, Node /g, ', ') ||
    'built on Linux; first run by the release workflow'
  );
}

function targetRows(root, results) {
  return targets.map((target) => {
    const file = join(root, fileOf(target));
    const size = existsSync(file) ? `${Math.round(statSync(file).size / 1000)} KB` : '';
    return [target.name, needs(target), runOn(target, results), size];
  });
}

function outcomeCell({ outcome, detail }) {
  if (outcome === 'not run') return '';
  if (outcome === 'failed') return '**failed**';
  return detail ?? 'ok';
}

const replaceBetween = (text, mark, content) => {
  const pattern = new RegExp(`(<!-- ${mark} -->)[^]*?(<!-- end -->)`);
  if (!pattern.test(text))
    throw new Error(`The page has no <!-- ${mark} --> ... <!-- end --> to write between`);
  return text.replace(pattern, `$1\n\n${content}\n\n$2`);
};

export function writePlatforms({ root, results, scenarios }) {
  const rows = targetRows(root, results);
  const headings = results.map(
    ({ runtime: { name, version, target, through } }) =>
      `${name.split(' ')[0]} ${version}<br>${target}${through ? `<br>${through}` : ''}`,
  );
  const matrix = scenarios.map(({ title }) => [
    title,
    ...results.map(({ outcomes }) => outcomeCell(outcomes.get(title))),
  ]);
  const failures = results.flatMap(({ runtime, outcomes }) =>
    [...outcomes]
      .filter(([, { outcome }]) => outcome === 'failed')
      .map(([title, { why }]) => {
        // An assertion of Node's ends its first line with a colon; what differs is below it.
        const line = why
          .trim()
          .replaceAll(/\s+/g, ' ')
          .replaceAll(/[`|<>]/g, "'")
          .slice(0, 200);
        return `- ${runtime.name} ${runtime.version} on ${runtime.target}, ${title}: ${line}`;
      }),
  );
  const date = new Date().toISOString().slice(0, 10);
  const content = [
    `Made by \`npm run test:matrix -- --write\` on ${date}, on Linux ${release()}, x64, with the packed tarball.`,
    '## Prebuilt binaries',
    markdown(['platform', 'needs', 'run on', 'size'], rows),
    '## What was run',
    'An empty cell: not run there (Windows has no signals like these, and what a program starts under qemu is not emulated).',
    markdown(['', ...headings], matrix),
    ...(failures.length > 0 ? ['What failed:', failures.join('\n')] : []),
    '## Not run',
    markdown(['what', 'why'], Object.entries(notRun)),
  ].join('\n\n');
  const page = join(root, 'docs/platforms.md');
  writeFileSync(page, replaceBetween(readFileSync(page, 'utf8'), 'matrix', content));
  const installing = join(root, 'docs/installing.md');
  const table = markdown(
    ['platform', 'needs', 'run on'],
    rows.map((row) => row.slice(0, 3)),
  );
  writeFileSync(installing, replaceBetween(readFileSync(installing, 'utf8'), 'platforms', table));
}
