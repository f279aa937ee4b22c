// Runs the JavaScript of README.md and docs/*.md and the examples of lib/ as a reader would, and
// follows the links of the pages.
//
//   node scripts/test-documents.mjs [--keep] [PAGE or SOURCE ...]
//
// The info string of each block of JavaScript or TypeScript says how it is used:
//   ```js                       a program that runs alone, and ends with the exit code 0
//   ```js file=worker.mjs       a file of the page's folder; all files are there before any runs
//   ```text output-of=main.mjs  the output of that file (exit=N: and its exit code, else 0). `…`
//                               stands for any text, in a line or for lines.
//                               signal=SIGINT: which it is sent once it has written something
//   ```ts file=main.ts           the same, run without its types
//   ```js fragment              a part of a program, which is not run here; with file= it is a part
//                               of that file, and another test runs it
// A block without one of these is run, so that a page cannot be wrong unseen. The pages about native
// addons are run by test-listings.mjs. --keep does not delete the temporary folders.
import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { transformSync } from 'rolldown/utils';

const LIMIT_MS = 60_000;
const root = resolve(import.meta.dirname, '..');
const { values, positionals } = parseArgs({
  options: { keep: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const docs = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'));
const pages = ['README.md', ...docs.map((name) => `docs/${name}`)];
const sources = readdirSync(join(root, 'lib'), { recursive: true })
  .map((name) => `lib/${String(name)}`)
  .filter((name) => name.endsWith('.ts') && /^ *\* @example$/m.test(read(name)));
const ofNativeAddons = new Set([
  'docs/tutorial-first-native-thread.md',
  'docs/native-addons.md',
  'docs/native-recipes.md',
  'docs/surviving-addons.md',
]);
const packed = packedPages();
const work = mkdtempSync(join(tmpdir(), 'allstop-documents-'));
mkdirSync(join(work, 'node_modules'));
symlinkSync(root, join(work, 'node_modules/allstop'), 'dir');
// What docs/diagnose.md and docs/servers.md have their readers install.
for (const name of ['@opentelemetry', 'fastify']) {
  symlinkSync(join(root, 'node_modules', name), join(work, 'node_modules', name));
}

let passed = 0;
const failures = [];
const chosen = positionals.length > 0 ? positionals : [...pages, ...sources];
for (const page of chosen) {
  const text = page.endsWith('.ts') ? examplesOf(read(page)) : read(page);
  for (const problem of [...deadLinks(page, text), ...brokenTables(text), ...tooMuch(page)]) {
    failures.push(`${page}: ${problem}`);
  }
  if (!ofNativeAddons.has(page)) await runPage(page, text);
}
if (!values.keep) rmSync(work, { recursive: true });
for (const failure of failures) console.error(`${failure}\n`);
console.log(`${passed} passed, ${failures.length} failed`);
process.exitCode = failures.length > 0 ? 1 : 0;

function read(page) {
  return readFileSync(join(root, page), 'utf8');
}

/** The lines of a source file that are examples, without the stars of the comment. */
function examplesOf(source) {
  let isExample = false;
  const lines = source.split('\n').map((line) => {
    if (/^ *\* @example$/.test(line)) isExample = true;
    const text = isExample ? line.replace(/^ *\* ?/, '') : '';
    if (text === '```') isExample = false;
    return text;
  });
  return lines.join('\n');
}

// --- programs

async function runPage(page, text) {
  const folder = join(
    work,
    page.endsWith('.md') ? basename(page, '.md') : page.replaceAll('/', '-'),
  );
  mkdirSync(folder);
  const programs = []; // { name, expected, exitCode }
  let count = 0;
  const elsewhere = new Set(); // folders of programs that a test of their own runs
  for (const { language, attributes, body, line } of blocksOf(text)) {
    const isScript = ['js', 'mjs', 'javascript', 'ts', 'typescript'].includes(language);
    if (attributes.file !== undefined && attributes.fragment !== undefined) {
      elsewhere.add(dirname(attributes.file));
    } else if (attributes.file !== undefined) {
      write(folder, attributes.file, body);
    } else if (elsewhere.has(attributes['output-of'])) {
      // With the test that runs the folder.
    } else if (attributes['output-of'] !== undefined) {
      const { 'output-of': name, exit = 0, signal } = attributes;
      programs.push({ name, expected: body, exitCode: Number(exit), signal });
    } else if (isScript && attributes.fragment === undefined) {
      count += 1;
      const name = `block-${count}.${language.startsWith('t') ? 'ts' : 'mjs'}`;
      write(folder, name, body);
      programs.push({ name, exitCode: 0, line });
    }
  }
  for (const program of programs) {
    const problem = await run(folder, program);
    if (problem === undefined) passed += 1;
    else failures.push(`${page}:${program.line ?? ''} ${program.name}: ${problem}`);
  }
}

/** Without the types of TypeScript, which Node 20 does not strip, and with the name of a module. */
function write(folder, name, body) {
  const text = name.endsWith('.ts') ? transformSync(name, body).code : body;
  const path = join(folder, runnable(name));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text.replaceAll(/(?<=['"]\.\/\S+)\.ts(?=['"])/g, '.mjs'));
}

function runnable(name) {
  return name.replace(/\.ts$/, '.mjs');
}

function blocksOf(text) {
  return [...text.matchAll(/^```(\S+)(.*)\n([\s\S]*?)^```$/gm)].map((match) => {
    const words = match[2].split(' ').filter((word) => word !== '');
    const attributes = Object.fromEntries(words.map((word) => [...word.split('='), true]));
    const line = text.slice(0, match.index).split('\n').length;
    return { language: match[1], attributes, body: match[3], line };
  });
}

/** @returns what is wrong, or undefined */
async function run(folder, { name, expected, exitCode, signal: sent }) {
  const env = { ...process.env, PORT: '0' };
  const child = spawn(process.execPath, [runnable(name)], { cwd: folder, timeout: LIMIT_MS, env });
  if (sent !== undefined) child.stdout.once('data', () => child.kill(sent));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  const [code, signal] = await new Promise((end) => {
    child.on('close', (...status) => end(status));
  });
  if (code !== exitCode) return `ended with ${signal ?? code}, not ${exitCode}:\n${output}`;
  if (expected === undefined || patternOf(expected).test(output)) return undefined;
  return `its output is not the one of the page. Output:\n${output}\nPage:\n${expected}`;
}

function patternOf(expected) {
  const escaped = expected
    .trimEnd()
    .split('…')
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  // Times are those of the day when the page was made.
  const times = escaped.map((part) =>
    part
      .replaceAll(
        /\d\d:\d\d:\d\d\\\.\d{3} \\\+\d\d:\d\d/g,
        String.raw`\d\d:\d\d:\d\d\.\d{3} [+-]\d\d:\d\d`,
      )
      .replaceAll(/\d+ ms ago/g, String.raw`\d+ ms ago`),
  );
  return new RegExp(`^\\s*${times.join('[^]*?')}\\s*$`);
}

// --- the package

/** The pages that go with the package: README.md and those of docs/ that package.json does not leave out. */
function packedPages() {
  const { files } = JSON.parse(read('package.json'));
  return pages.filter((page) => !files.includes(`!${page}`));
}

/** A reader has an hour: the README is a page, the pages of the package are few, the map is short. */
function tooMuch(page) {
  const words = (name) => read(name).split(/\s+/).length;
  const ofDocs = packed.filter((name) => name.startsWith('docs/'));
  if (page === 'README.md' && words(page) > 900) return [`has ${words(page)} words, not 900`];
  if (page !== 'docs/index.md') return [];
  const sum = ofDocs.reduce((all, name) => all + words(name), 0);
  const bytes = Buffer.byteLength(read('ARCHITECTURE.md'));
  return [
    ...(ofDocs.length > 25 ? [`the package has ${ofDocs.length} pages, not 25`] : []),
    ...(sum > 35_000 ? [`the pages of the package have ${sum} words, not 35000`] : []),
    ...(bytes > 12_288 ? [`ARCHITECTURE.md has ${bytes} bytes, not 12288`] : []),
  ];
}

// --- links

/** Rows that a page shows as text, since an empty line parts them from the head of their table. */
function brokenTables(text) {
  const lines = text.replace(/^```.*?^```$/gms, '').split('\n');
  const isRow = (line) => line?.startsWith('|') ?? false;
  return lines
    .filter((line, at) => isRow(line) && !isRow(lines[at - 1]) && !/^[|:\s-]+$/.test(lines[at + 1]))
    .map((line) => `the table that begins with ${line} has no head`);
}

function deadLinks(page, text) {
  const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, '');
  const problems = [];
  for (const [, target] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue;
    const [path, anchor] = target.split('#');
    const leadsTo = relative(root, join(dirname(join(root, page)), path));
    if (packed.includes(page) && pages.includes(leadsTo) && !packed.includes(leadsTo)) {
      problems.push(`the link ${target} leads to a page that is not in the package`);
    }
    const file = path === '' ? join(root, page) : join(dirname(join(root, page)), path);
    if (!existsSync(file)) problems.push(`the link ${target} leads to no file`);
    else if (anchor !== undefined && !anchorsOf(file).has(anchor)) {
      problems.push(`the link ${target} leads to no heading of ${relative(root, file)}`);
    }
  }
  return problems;
}

/** The anchors that GitHub gives to headings. */
function anchorsOf(file) {
  const text = readFileSync(file, 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '');
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading
      .toLowerCase()
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-'),
  );
  return new Set(headings);
}
