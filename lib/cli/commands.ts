/** The commands: what each is told by its help, and what runs it. */

import { join, relative, sep } from 'node:path';
import { root } from '../native/binary/package-files.ts';
import { type Command, UsageError } from './base/command.ts';
import { checkAddon } from './check-addon.ts';
import { demo } from './demo.ts';
import { newAddon } from './new-addon.ts';

// What does the work is imported when it is needed: the other commands must work even if the rest of
// the library cannot load.

/**
 * Makes the command `name`. `folder`: the path, within the package, of what it prints; `note`: what
 * its help says about --relative.
 */
function folderCommand(name: string, what: string, folder: string, note = ''): Command {
  return {
    summary: `prints the path of ${what}`,
    help: `Prints the path of ${what}.${note}`,
    examples: [`npx allstop ${name}`, `npx allstop ${name} --relative`],
    options: ['relative'],
    run: (options) => {
      const absolute = join(root(), folder);
      const path = options.relative ? relative('.', absolute) : absolute;
      // node-gyp and CMake read a backslash as the start of an escape sequence.
      const text = path.split(sep).join('/');
      return { text: `${text}\n`, json: { [name]: text } };
    },
  };
}

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
binary from before is kept), 130 or 143 after SIGINT or SIGTERM.`,
  examples: ['npm install --save-dev cmake-js node-addon-api', 'npx allstop build'],
  environment: [['CC, CXX', 'the compilers that CMake uses (default: the ones that CMake finds)']],
  options: [],
  run: async () => {
    const { compile } = await import('./compilation/compile.ts');
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
  options: [
    'module',
    'servers',
    'cluster',
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
  required: ['module', 'servers', 'cluster'],
  run: async (options) => {
    const { serve } = await import('./worker/serve.ts');
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
  options: ['output'],
  required: ['output'],
  run: async ({ argument = '', output = '' }) => {
    const { writePage } = await import('./timeline/page.ts');
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
