// Compiles and runs the listings of the pages about native addons, as a reader would.
//
//   node scripts/test-listings.mjs [--keep] [FOLDER ...]
//
// The info string of each fenced block says how the block is used:
//   ```cpp file=step1/addon.cc          a file of the project step1
//   ```json file=package.json           a file of every project of the page
//   ```text output-of=step1/main.mjs    the output of that program (exit=N: and its exit code)
//   ```cpp fragment                     a part of a program, which is not compiled
// A block without one of these is an error, so that every listing is tested. A project with
// CMakeLists.txt is built by cmake-js if one of its sources is an addon, else by cmake; a project
// with binding.gyp is built and run once more by node-gyp. The package `allstop` is this
// repository, which must have been compiled. --keep does not delete the temporary folder.
import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const require = createRequire(import.meta.url);
const root = resolve(import.meta.dirname, '..');
const { values, positionals } = parseArgs({
  options: { keep: { type: 'boolean', default: false } },
  allowPositionals: true,
});

// --- reading the page

const pages = [
  'docs/tutorial-first-native-thread.md',
  'docs/native-addons.md',
  'docs/native-recipes.md',
  'docs/surviving-addons.md',
];
const projectFiles = new Map(); // by project: a Map of texts by the path in the project
const runs = []; // { program, expected, exitCode }
for (const page of pages) readPage(page);
const projects = positionals.length > 0 ? positionals : [...projectFiles.keys()];

function readPage(page) {
  const files = new Map(); // by path
  for (const [, info, body] of readFileSync(join(root, page), 'utf8').matchAll(
    /^```(.*)\n([\s\S]*?)^```$/gm,
  )) {
    const [language, ...rest] = info.split(' ');
    const attributes = Object.fromEntries(rest.map((each) => each.split('=')));
    if (attributes.file) {
      if (files.has(attributes.file))
        throw new Error(`${page}: two blocks name the file ${attributes.file}`);
      files.set(attributes.file, body);
    } else if (attributes['output-of']) {
      const exitCode = Number(attributes.exit ?? 0);
      runs.push({ program: attributes['output-of'], expected: body, exitCode });
    } else if (language !== 'sh' && !rest.includes('fragment')) {
      throw new Error(
        `${page}: a block of ${language || 'code'} has neither file= nor output-of=:\n${body}`,
      );
    }
  }
  const isShared = ([path]) => !path.includes('/');
  const shared = [...files].filter(isShared);
  const own = [...files].filter((file) => !isShared(file));
  for (const project of new Set(own.map(([path]) => folderOf(path)))) {
    if (projectFiles.has(project))
      throw new Error(`${page}: another page has the project ${project}`);
    const inside = own
      .filter(([path]) => folderOf(path) === project)
      .map(([path, text]) => [path.slice(project.length + 1), text]);
    const all = new Map([...shared, ...inside]);
    projectFiles.set(project, all);
    const main = `${project}/main.mjs`;
    if (all.has('main.mjs') && !runs.some(({ program }) => program === main))
      throw new Error(`${page}: no block has the output of ${main}`);
  }
}

function folderOf(path) {
  return path.slice(0, path.indexOf('/'));
}

// --- the projects

const work = mkdtempSync(join(tmpdir(), 'allstop-listings-'));
mkdirSync(join(work, 'node_modules/.bin'), { recursive: true });
symlinkSync(root, join(work, 'node_modules/allstop'), 'dir');
symlinkSync(
  dirname(require.resolve('node-addon-api/package.json')),
  join(work, 'node_modules/node-addon-api'),
  'dir',
);
linkCommand();

for (const project of projects) {
  for (const [path, text] of projectFiles.get(project)) {
    const target = join(work, project, path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
  }
}

// `npx allstop` is the command of this repository; a stand-in replaces it if it is not compiled.
function linkCommand() {
  const command = join(work, 'node_modules/.bin/allstop');
  const own = require('../package.json').bin?.allstop;
  if (own && existsSync(join(root, own))) {
    writeFileSync(command, `#!/bin/sh\nexec node '${join(root, own)}' "$@"\n`);
  } else {
    writeFileSync(
      command,
      `#!/bin/sh\ncase $1 in cmake | include) echo '${join(root, 'native')}'/$1 ;; *) exit 2 ;; esac\n`,
    );
  }
  chmodSync(command, 0o755);
}

// --- building and running

// Use the headers of the local Node, so that node-gyp downloads none.
const env = { ...process.env, npm_config_update_notifier: 'false' };
const prefix = resolve(dirname(process.execPath), '..');
if (existsSync(join(prefix, 'include/node/node_api.h'))) env.npm_config_nodedir ??= prefix;

/** Resolves to { status, output }; status is null if the command was killed at its time limit. */
function run(command, args, folder, seconds) {
  return new Promise((done) => {
    const child = spawn(command, args, {
      cwd: join(work, folder),
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), seconds * 1000);
    let output = '';
    let errors = '';
    child.stdout.on('data', (data) => (output += data));
    child.stderr.on('data', (data) => (errors += data));
    child.on('error', (error) => (errors += `${error}\n`));
    child.on('close', (status) => {
      clearTimeout(timer);
      done({ status, output, errors });
    });
  });
}

// Turns compiler warnings on, which fail the build. CMake gets them by a file that every project
// includes, because cmake-js overrides CXXFLAGS.
env.CXXFLAGS = '-Wall -Wextra'; // for node-gyp
writeFileSync(join(work, 'warnings.cmake'), 'add_compile_options(-Wall -Wextra)\n');
const warnings = `CMAKE_PROJECT_INCLUDE=${join(work, 'warnings.cmake')}`;

const node = (cli, ...args) => [process.execPath, [require.resolve(cli), ...args]];

const builds = {
  'cmake-js': [node('cmake-js/bin/cmake-js', 'compile', `--CD${warnings}`)],
  cmake: [
    ['cmake', ['-B', 'build', '-DCMAKE_BUILD_TYPE=Release', `-D${warnings}`]],
    ['cmake', ['--build', 'build', '-j', '2']],
  ],
  'node-gyp': [node('node-gyp/bin/node-gyp.js', 'rebuild', '--loglevel', 'error')],
};

function buildsOf(project) {
  const files = projectFiles.get(project);
  const has = (name) => files.has(name);
  const isAddon = [...files.values()].some((text) => /^(NODE_API_MODULE|NAPI_MODULE)/m.test(text));
  const kinds = [];
  if (has('CMakeLists.txt')) kinds.push(isAddon || has('main.mjs') ? 'cmake-js' : 'cmake');
  if (has('binding.gyp')) kinds.push('node-gyp');
  return kinds;
}

let passed = 0;
const failures = [];
function note(what, problem) {
  if (problem === undefined) passed += 1;
  else failures.push(what);
  console.log(problem === undefined ? `ok: ${what}` : `FAILED: ${what}\n${problem}`);
}

async function build(project, kind) {
  rmSync(join(work, project, 'build'), { recursive: true, force: true });
  for (const [command, args] of builds[kind]) {
    const { status, output, errors } = await run(command, args, project, 300);
    if (status !== 0) return `exit code ${status}\n${output}${errors}`;
    const warned = (output + errors).match(/^.*\bwarning: .*$/gm);
    if (warned) return warned.join('\n');
  }
  return undefined;
}

async function tryProgram({ program, expected, exitCode }) {
  const project = folderOf(program);
  const path = join(work, program);
  const { status, output, errors } = await (program.endsWith('.mjs')
    ? run(process.execPath, [path], project, 30)
    : run(path, [], project, 30));
  if (status === exitCode && output === expected && errors === '') return undefined;
  return `exit code ${status}, expected ${exitCode}\n--- expected\n${expected}--- printed\n${output}${errors}`;
}

async function tryProject(project) {
  for (const kind of buildsOf(project)) {
    const problem = await build(project, kind);
    note(`${project}: built by ${kind}`, problem);
    if (problem !== undefined) continue;
    for (const each of runs.filter(({ program }) => folderOf(program) === project)) {
      note(`${each.program} (${kind})`, await tryProgram(each));
    }
  }
}

const queue = [...projects];
const started = Date.now();
await Promise.all(
  [1, 2].map(async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await tryProject(next);
  }),
);
if (values.keep) console.log(`left in ${work}`);
else rmSync(work, { recursive: true, force: true });

const seconds = Math.round((Date.now() - started) / 1000);
console.log(`${passed} passed, ${failures.length} failed (${seconds} s)`);
process.exit(failures.length === 0 && passed > 0 ? 0 : 1);
