/** The commands: what each is told by its help, and what runs it. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { constants } from 'node:os';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { messageOf } from '../base/thrown-value.ts';
import { printable } from '../coordinator/words.ts';
import { root } from '../native/binary/package-files.ts';
import { type Command, CommandError, ENDING_SIGNALS, UsageError, version } from './base/command.ts';

// `allstop new-addon DIR` makes the folder of a native addon whose thread JavaScript stops and joins.

/** The files of each template, relative to the package's folder `templates`: later ones replace earlier ones. */
const TEMPLATES: ReadonlyMap<string, readonly string[]> = new Map([
  ['cpp', ['common', 'cpp']],
  ['c', ['common', 'c']],
  ['cmake', ['common', 'cpp/addon.cc', 'cmake']],
  ['rust', ['common', 'rust']],
]);

/**
 * mkdirSync's own `recursive` tries again for ever where the system says ENOENT, as in /proc.
 *
 * @returns the topmost folder that was made; undefined if all were there
 */
function makeWithParents(folder: string): string | undefined {
  if (existsSync(folder)) return undefined;
  const top = makeWithParents(dirname(folder));
  mkdirSync(folder);
  return top ?? folder;
}

/** A name that npm accepts. */
const packageName = (folder: string): string =>
  basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+/, '') || 'addon';

/** Not by cpSync, which copies the modes, too: the package may be read-only. */
function copy(from: string, to: string): void {
  if (!statSync(from).isDirectory()) return writeFileSync(to, readFileSync(from));
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) copy(join(from, name), join(to, name));
}

function fill(folder: string, parts: readonly string[]): void {
  for (const part of parts) {
    copy(
      join(root(), 'templates', part),
      part.includes('/') ? join(folder, basename(part)) : folder,
    );
  }
  // npm leaves a .gitignore out of a tarball.
  renameSync(join(folder, 'gitignore'), join(folder, '.gitignore'));
  const manifest = join(folder, 'package.json');
  const named = readFileSync(manifest, 'utf8')
    .replace('"name": "addon"', `"name": "${packageName(folder)}"`)
    .replace('"allstop": "*"', `"allstop": "^${version}"`);
  writeFileSync(manifest, named);
}

/** @throws CommandError: `folder` is not empty, or cannot be made; then nothing is left of it */
function make(folder: string, parts: readonly string[]): void {
  let names: string[];
  let top: string | undefined;
  try {
    top = makeWithParents(folder);
    names = readdirSync(folder);
  } catch (error) {
    throw new CommandError(`the folder cannot be made: ${messageOf(error)}`);
  }
  if (names.length > 0) {
    throw new CommandError(
      `the folder ${folder} is not empty\nWhat to do: name a folder that is empty, or that does not exist yet`,
    );
  }
  try {
    fill(folder, parts);
  } catch (error) {
    const made = top === undefined ? readdirSync(folder).map((name) => join(folder, name)) : [top];
    for (const path of made) rmSync(path, { recursive: true, force: true });
    throw new CommandError(`the files cannot be made: ${messageOf(error)}`);
  }
}

/** As a shell takes it: cmd.exe and PowerShell know no other sign than the double quote. */
function quoted(path: string): string {
  if (!/[^\p{L}\p{N}_./\\:+@-]/u.test(path)) return path;
  if (process.platform === 'win32') return `"${path}"`;
  return /["$`\\!]/.test(path) ? `'${path.replaceAll("'", "'\\''")}'` : `"${path}"`;
}

const newAddon: Command = {
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
    if (argument === '') throw new UsageError('DIR is empty');
    const folder = resolve(argument);
    make(folder, parts);
    const path = relative('.', folder) || '.';
    const page = template === 'rust' ? 'rust.md' : 'native-addons.md';
    const text = [
      `Made ${folder} (template ${template}). Now:`,
      `  cd ${quoted(path)}`,
      '  npm install',
      '  npm run build',
      '  npm start',
      '  npm run check',
      `All that an addon can do: node_modules/allstop/docs/${page}`,
    ];
    return { text: `${text.map(printable).join('\n')}\n`, json: { 'new-addon': folder, template } };
  },
};

// `allstop demo` runs the program of examples/first.

/** From the root of the package. */
const PROGRAM = 'examples/first/main.mjs';

const demo: Command = {
  summary: 'runs a first program: a worker, a task and a looper that stop together',
  help: `Runs ${PROGRAM} of the package as node does. A worker computes, a task waits for an answer, a looper ticks. Press Ctrl-C: all of
them end, and the program says why, and how long each took. After ten seconds the worker fails,
which also stops the others.

The program ends with the exit code 1 because its worker fails, or 129, 130 or 143 after
SIGHUP, SIGINT or SIGTERM. It is meant to be read and copied: --json prints its path, and what it writes goes to
stderr.`,
  examples: ['npx allstop demo', 'cp node_modules/allstop/examples/first/main.mjs .'],
  options: [],
  run: async ({ json }) => {
    process.cwd(); // throws where that folder was deleted, as the program would
    const program = join(root(), PROGRAM);
    const args = 'deno' in process.versions ? ['run', '-A', program] : [program];
    // In a process group of its own: Ctrl-C, or npm beside it, would signal it a second time, which
    // ends a program at once. The first signal is passed on, once.
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', json ? 2 : 'inherit', 'inherit'],
      detached: process.platform !== 'win32',
    });
    let isPassed = false;
    const pass = (signal: NodeJS.Signals): void => {
      if (!isPassed) child.kill(signal);
      isPassed = true;
    };
    for (const signal of ENDING_SIGNALS) process.on(signal, pass);
    process.stderr.write('Press Ctrl-C, or wait ten seconds until the worker fails.\n');
    try {
      const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
      const exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
      return { text: '', json: { demo: program, exitCode }, exitCode };
    } catch (error) {
      throw new CommandError(`${process.execPath} cannot be run: ${messageOf(error)}`);
    } finally {
      for (const signal of ENDING_SIGNALS) process.off(signal, pass);
    }
  },
};

// `allstop check-addon FILE --exercise SCRIPT` ends workers that use an addon, in every way.

const checkAddon: Command = {
  summary: 'says whether a native addon survives the end of its worker',
  help: `Loads the native addon FILE in a worker, uses it by SCRIPT, and ends the worker: by
terminate(), process.exit() and an exception, each when the addon was just loaded, while
the exercise is running, and when it is done; with one worker, and with two of which the
second goes on. In three more cases each function that SCRIPT gives to the addon throws when it
has been called, and another worker uses the addon after the first has ended. Afterwards the main thread lives on for a while, so that native threads
which were left behind crash if they are going to. Each of the 21 cases has a process of
its own. Prints a table of what crashed, or did not end, and when.

SCRIPT is an ES module: export default async (addon) => { ... } uses the addon. What it
starts may go on when it returns. If the script also has export async function
afterwards(), this is called after each worker's end, in another worker and without the
addon: for events that somebody has to cause, such as a changed file.

The runtimes are the one that runs this command, and node, bun and deno of the PATH; or
those that --runtimes names.

Exit code: 0 if all is well, 1 if anything crashed, hung or failed, 129, 130 or 143 after
SIGHUP, SIGINT or SIGTERM.`,
  examples: [
    'npx allstop check-addon build/Release/addon.node --exercise exercise.mjs',
    'npx allstop check-addon addon.node --exercise exercise.mjs --runtimes node,bun --json',
  ],
  argument: 'FILE',
  required: ['exercise'],
  options: ['runtimes', 'timeout'],
  run: async ({ argument = '', exercise = '', runtimes, timeout = '30' }) => {
    const seconds = Number(timeout);
    if (!(seconds > 0 && seconds <= 3_600)) {
      throw new UsageError(`--timeout must be a number of seconds up to 3600, not '${timeout}'`);
    }
    const { check } = await import('./check-addon/check.ts');
    return check({ addon: argument, exercise, runtimes, timeoutMs: seconds * 1_000 });
  },
};

// What does the work is imported when it is needed: the other commands must work even if the rest of
// the library cannot load.

/**
 * Makes the command `name`. `folder`: the path, within the package, of what it prints; `note`: what
 * its help says about --relative.
 */
const folderCommand = (name: string, what: string, folder: string, note = ''): Command => ({
  summary: `prints the path of ${what}`,
  help: `Prints the path of ${what}.${note}`,
  examples: [`npx allstop ${name}`, `npx allstop ${name} --relative`],
  options: ['relative'],
  run: (options) => {
    const absolute = join(root(), folder);
    const path = options.relative ? relative('.', absolute) || '.' : absolute;
    // node-gyp and CMake read a backslash as the start of an escape sequence.
    const text = path.split(sep).join('/');
    return { text: `${text}\n`, json: { [name]: text } };
  },
});

const cmake: Command = folderCommand(
  'cmake',
  'the folder with allstopConfig.cmake, for find_package(allstop CONFIG)',
  'native/cmake',
);

const include: Command = folderCommand(
  'include',
  'the folder with the C and C++ headers',
  'native/include',
  ' With --relative for binding.gyp: node-gyp cannot handle an absolute path with a space, a quote or another sign that a shell reads.',
);

const doctor: Command = {
  summary: 'checks this machine, or a NATS cluster, and says what is wrong and what to do',
  help: `Without options: checks whether allstop works on this machine. It looks at the JavaScript
runtime (Node.js, Bun or Deno), the platform, the permissions and the native binary, runs a
short test with the binary, and lists known problems of this runtime. The binary is loaded in
a child process, so a binary that crashes is reported like any other problem.

With --servers: checks why a cluster on NATS does not start. For each server it checks the
DNS name, the TCP connection, whether a NATS server answers, TLS, the credentials and
JetStream. With --cluster as well: it asks the cluster's coordinator for its report, and
each worker process whether it is there. It changes nothing in the cluster, and ends within
20 s. Credentials come from environment variables: see 'allstop help worker'.

Exit code: 0 if all is well, 1 if a problem was found.`,
  examples: [
    'npx allstop doctor',
    'npx allstop doctor --json',
    'npx allstop doctor --servers nats-1:4222,nats-2:4222 --cluster main',
  ],
  environment: [
    ['ALLSTOP_BINARY', 'the path of the native binary to load instead of the one of the package'],
    ['NO_COLOR', 'if it is set, the marks have no colour'],
    ['FORCE_COLOR', 'if it is set and not 0 or false, the marks have colour, also in a pipe'],
    ['ALLSTOP_NATS_…', "credentials for --servers: see 'allstop help worker'"],
  ],
  options: ['servers', 'cluster', 'domain', 'verbose'],
  run: async ({ servers, cluster, domain, verbose, json }) => {
    if (servers !== undefined) {
      const { diagnoseNetwork } = await import('./doctor/network/diagnose-network.ts');
      return diagnoseNetwork(servers, cluster, domain);
    }
    if (cluster !== undefined) throw new UsageError("'doctor' needs --servers for --cluster");
    if (domain !== undefined) throw new UsageError("'doctor' needs --servers for --domain");
    const { diagnose } = await import('./doctor/diagnose.ts');
    return diagnose(verbose === true || json === true);
  },
};

const build: Command = {
  summary: 'compiles the native binary on this machine',
  help: `Compiles the native binary of allstop from the sources in the package, tests it and prints
its path. From then on allstop loads this binary instead of the prebuilt one.

Needed: CMake 3.18 or later, a C++17 compiler, and the npm packages cmake-js and
node-addon-api. To install these two: npm install --save-dev cmake-js node-addon-api

Exit code: 0 if the new binary works, 1 if it could not be compiled or does not work (the
binary from before is kept), 129, 130 or 143 after SIGHUP, SIGINT or SIGTERM.`,
  examples: ['npm install --save-dev cmake-js node-addon-api', 'npx allstop build'],
  environment: [['CC, CXX', 'the compilers that CMake uses (default: the ones that CMake finds)']],
  options: [],
  run: async () => {
    const { compile } = await import('./compile.ts');
    const path = await compile();
    return { text: `${path}\n`, json: { build: path } };
  },
};

const worker: Command = {
  summary: 'runs functions of a module on this machine, for a cluster on NATS',
  help: `Connects to the NATS servers, waits for the coordinator of the cluster, and runs the
functions that the coordinator schedules. When that coordinator has ended, the worker waits
for the next one. The functions run on worker threads, at most --slots at the same time.

Credentials are read from environment variables or files, never from options; the functions do
not find them in their environment. TLS is used if a server is given as tls://… or requires TLS.

After the first SIGINT or SIGTERM the worker accepts no more functions and ends when those
that it has are done. After the second it ends at once; its functions then run again elsewhere.
Each line of output on stderr begins with the time (UTC). With --json each is an event as JSON.

A service (systemd, Docker, Kubernetes) runs node_modules/.bin/allstop itself, or
node node_modules/allstop/dist/cli/main.js, because the signal has to reach the worker. npx ends
at a SIGTERM of its own; a worker that npx has started sees that end, and then ends as after
a SIGTERM.

Exit code: 130 after SIGINT, 143 after SIGTERM, 1 after an error.`,
  examples: [
    'npx allstop worker --module dist/tasks.js --servers nats://127.0.0.1:4222 --cluster main',
    'exec node_modules/.bin/allstop worker --module tasks.js --servers tls://n1,tls://n2 --cluster main --slots 8',
  ],
  environment: [
    ['ALLSTOP_NATS_USER, ALLSTOP_NATS_PASS', 'user and password'],
    ['ALLSTOP_NATS_TOKEN', 'a token'],
    ['ALLSTOP_NATS_NKEY', 'the seed of an nkey (SU…)'],
    ['ALLSTOP_NATS_CREDS', 'the text of a .creds file'],
    [
      'ALLSTOP_NATS_PASS_FILE, …_TOKEN_FILE, …_NKEY_FILE, …_CREDS_FILE',
      'the path of a file that holds the same',
    ],
    ['ALLSTOP_NATS_CA_FILE', 'the certificates to trust; also asks for TLS'],
    ['ALLSTOP_NATS_CERT_FILE, ALLSTOP_NATS_KEY_FILE', 'the certificate of this client and its key'],
    ['ALLSTOP_NATS_HANDSHAKE_FIRST=1', "for servers that are set to 'handshake_first'"],
    ['NODE_DEBUG=allstop', 'a line on stderr for each error, stop and thread'],
  ],
  required: ['module', 'servers', 'cluster'],
  options: [
    'job',
    'task',
    'spec',
    'definition',
    'slots',
    'recycle',
    'setup',
    'teardown',
    'resources',
    'health',
  ],
  run: async (options) => {
    const { serve } = await import('./serve.ts');
    return serve(options);
  },
};

const timeline: Command = {
  summary: 'draws a timeline as an HTML page',
  help: `Reads FILE and writes one self-contained HTML page: a lane for each thread, the stop as a
line across them, how long each thread took to see the stop and to end, and in red the
threads that a join left behind.

FILE is the JSON of what coord.timeline() returned, or of its toChromeTrace():
  writeFileSync('timeline.json', JSON.stringify(coord.timeline()))`,
  examples: ['npx allstop timeline timeline.json -o timeline.html'],
  argument: 'FILE',
  required: ['output'],
  options: [],
  run: async ({ argument = '', output = '' }) => {
    const { writePage } = await import('./timeline.ts');
    return writePage(argument, output);
  },
};

export const commands: Readonly<Record<string, Command>> = {
  demo,
  include,
  cmake,
  doctor,
  build,
  worker,
  timeline,
  'check-addon': checkAddon,
  'new-addon': newAddon,
};
