/** Which native binary a program loads, and the error if none loads. */
import { execFileSync, type SpawnSyncOptions, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  COMPILED,
  compiledBinary,
  PREBUILT,
  type Project,
  publishedCopy,
} from '../support/published-copy.ts';

type Failure = { name: string; code: string; message: string; cause?: string; causeCode?: string };
/** The report of a program about one use of allstop: the addons in its process, or the error. */
type Use = { loaded: string[] } | Failure;

const isLinux = process.platform === 'linux';
const tag = /\.(\w+)\.node$/.exec(PREBUILT)?.[1];
const platform = `${process.platform}-${process.arch}${tag === undefined ? '' : `-${tag}`}`;
const permissionModel =
  Number(process.versions.node.split('.')[0]) < 23 ? '--experimental-permission' : '--permission';

const folders: string[] = [];
afterAll(() => {
  for (const each of folders) rmSync(each, { recursive: true, force: true });
});

function newFolder(): string {
  const made = realpathSync(mkdtempSync(join(tmpdir(), 'loading ')));
  folders.push(made);
  return made;
}

/** A module that lies beside every program of these tests. */
const HELPERS = `
export const loaded = () => process.report.getReport().sharedObjects.filter((file) => file.endsWith('.node'));
export const say = (what) => console.log(JSON.stringify(what));
export function use({ Coordinator }) {
  try {
    const coord = new Coordinator();
    if (coord.shouldStop()) throw new Error('a new coordinator is stopped');
    return { loaded: loaded() };
  } catch (error) {
    const { name, code, message, cause } = error;
    return { name, code, message, cause: cause?.message, causeCode: cause?.code };
  }
}
`;
const USE = `
import * as allstop from 'allstop';
import { say, use } from './helpers.mjs';
say(use(allstop));
`;

function written(folder: string, name: string, content: string | Buffer): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

function project(options: { compiled?: boolean; prebuilt?: boolean } = { prebuilt: true }) {
  const made: Project = publishedCopy(options);
  folders.push(made.folder);
  written(made.folder, 'helpers.mjs', HELPERS);
  written(made.folder, 'use.mjs', USE);
  return made;
}

type Setting = SpawnSyncOptions & {
  command?: string[];
  flags?: string[];
  override?: string;
};

/** Runs a program, which must end by itself with exit code 0. Returns the lines that it printed. */
function run<Line = Use>(script: string | string[], setting: Setting = {}): Line[] {
  const { command = [process.execPath], flags = [], override = '', ...options } = setting;
  const [program, ...args] = [...command, ...flags, ...[script].flat()] as [string, ...string[]];
  const { status, signal, stdout, stderr } = spawnSync(program, args, {
    timeout: 120_000,
    killSignal: 'SIGKILL',
    ...options,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '', ALLSTOP_BINARY: override, ...options.env },
  });
  expect({ status, signal, stderr: status === 0 ? '' : stderr }).toEqual({
    status: 0,
    signal: null,
    stderr: '',
  });
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

const useOf = ({ folder }: Project, setting?: Setting): Use | undefined =>
  run(join(folder, 'use.mjs'), { cwd: folder, ...setting })[0];

/** The parts of the message of an UnavailableError. */
function partsOf(use: Use | undefined) {
  expect(use).toMatchObject({ name: 'UnavailableError', code: 'ERR_ALLSTOP_UNAVAILABLE' });
  const { message, cause, causeCode } = use as Failure;
  const pattern =
    /^allstop: no native binary for (\S+) loads \(node v[\d.]+\)\nLooked for:\n([^]+)\nPrebuilt here: (.+)\nLikely cause: (.+)\nWhat to do: (.+)\nMore: npx allstop doctor$/;
  const parts = pattern.exec(message);
  expect(parts, message).not.toBeNull();
  const [lookedFor = '', tried = '', there = '', why = '', remedy = ''] = parts?.slice(1) ?? [];
  return { lookedFor, tried, there, why, remedy, cause, causeCode };
}

const failureOf = (of: Project, setting?: Setting) => partsOf(useOf(of, setting));

let usual: Project;
let files: string;
beforeAll(() => {
  usual = project();
  files = newFolder();
});
const prebuiltOf = ({ packaged }: Project): string => join(packaged, PREBUILT);

describe('which binary is loaded', () => {
  it('the prebuilt one, where none is compiled', () => {
    expect(useOf(usual)).toEqual({ loaded: [prebuiltOf(usual)] });
  });

  it('the compiled one, where there are both', () => {
    const both = project({ compiled: true, prebuilt: true });
    expect(useOf(both)).toEqual({ loaded: [join(both.packaged, COMPILED)] });
  });

  it('the prebuilt one, where the compiled one is damaged', () => {
    const both = project({ compiled: true, prebuilt: true });
    writeFileSync(join(both.packaged, COMPILED), 'damaged');
    expect(useOf(both)).toEqual({ loaded: [prebuiltOf(both)] });
  });

  it('none, on import: that of a package without a binary is no error', () => {
    const script = written(
      usual.folder,
      'import.mjs',
      "import 'allstop'; import { loaded, say } from './helpers.mjs'; say({ loaded: loaded() });",
    );
    expect(run(script)).toEqual([{ loaded: [] }]);
    const none = project({});
    copyFileSync(script, join(none.folder, 'import.mjs'));
    expect(run(join(none.folder, 'import.mjs'))).toEqual([{ loaded: [] }]);
  });

  it('the same one by require, and by its literal subpath', () => {
    const subpath = `allstop/${PREBUILT}`;
    const script = written(
      usual.folder,
      'require.cjs',
      `const raw = require(${JSON.stringify(subpath)});
       const allstop = require('allstop');
       import('./helpers.mjs').then(({ say, use }) => {
         say(use(allstop));
         say({ loaded: [require.resolve(${JSON.stringify(subpath)})], setup: typeof raw.setup });
       });`,
    );
    const loaded = [prebuiltOf(usual)];
    expect(run(script)).toEqual([{ loaded }, { loaded, setup: 'function' }]);
  });

  it('the one for this C library, and no other', () => {
    const other = tag === 'glibc' ? 'musl' : 'glibc';
    const both = project();
    const wrong = prebuiltOf(both).replace(/\.?\w*\.node$/, `.${other}.node`);
    writeFileSync(wrong, 'never looked at');
    expect(useOf(both)).toEqual({ loaded: [prebuiltOf(both)] });
    rmSync(prebuiltOf(both));
    const { lookedFor, tried, there } = failureOf(both);
    expect({ lookedFor, there }).toEqual({
      lookedFor: platform,
      there: `${process.platform}-${process.arch}-${other}`,
    });
    expect(tried).not.toContain(wrong);
  });
});

describe.skipIf(!isLinux || tag !== 'glibc')('the C library of the running program', () => {
  const INTERPRETER = /\/lib\w*\/ld-linux[-\w]*\.so\.\d/;
  let node: Buffer;
  let interpreter: string;
  beforeAll(() => {
    node = readFileSync(process.execPath);
    interpreter = INTERPRETER.exec(node.toString('latin1', 0, 4_096))?.[0] ?? '';
  });

  it('is found where the dynamic loader is told to execute node', () => {
    expect(useOf(usual, { command: [interpreter, process.execPath] })).toEqual({
      loaded: [prebuiltOf(usual)],
    });
  });

  it('is found without a name server, which could take its time', () => {
    const watched = `
      const { getReport } = process.report;
      process.report.getReport = () => {
        const asks = process.report.excludeNetwork === false;
        console.log(JSON.stringify({ asks }));
        return getReport();
      };`;
    const flags = ['--import', `data:text/javascript,${encodeURIComponent(watched)}`];
    const command = [interpreter, process.execPath];
    const said = run<{ asks: boolean }>(join(usual.folder, 'use.mjs'), { command, flags });
    // The second report is made by the program itself.
    expect(said.map(({ asks }) => asks)).toEqual([
      false,
      'excludeNetwork' in process.report,
      undefined,
    ]);
  });

  /** A copy of node that names another dynamic loader: the usual one, by another path. */
  function nodeWith(folder: string, name: string): string {
    mkdirSync(folder);
    folders.push(folder);
    const loader = join(folder, name);
    symlinkSync(interpreter, loader);
    const copy = Buffer.from(node);
    const field = Buffer.alloc(interpreter.length);
    expect(field.write(loader)).toBe(loader.length);
    field.copy(copy, copy.indexOf(interpreter));
    const path = written(newFolder(), 'node', copy);
    chmodSync(path, 0o755);
    return path;
  }

  it('is told by the name of its loader, not by the folders that it is in', () => {
    const command = [nodeWith(`/tmp/musl-${process.pid}`, 'ld-linux')];
    expect(useOf(usual, { command })).toEqual({ loaded: [prebuiltOf(usual)] });
  });

  it('is musl where the loader is that of musl, on whatever distribution', () => {
    const command = [nodeWith(`/tmp/al-${process.pid}`, 'ld-musl')];
    const { lookedFor, tried } = failureOf(usual, { command });
    expect(lookedFor).toBe(`linux-${process.arch}-musl`);
    expect(tried).toContain('allstop.musl.node: not there');
  });
});

describe('ALLSTOP_BINARY', () => {
  let other: string;
  beforeAll(() => {
    other = join(files, 'other.node');
    copyFileSync(compiledBinary, other);
    copyFileSync(compiledBinary, join(usual.folder, 'relative.node'));
  });

  it('is loaded in place of a compiled and a prebuilt one', () => {
    const both = project({ compiled: true, prebuilt: true });
    expect(useOf(both, { override: other })).toEqual({ loaded: [other] });
  });

  it('may be relative to the working directory', () => {
    const loaded = [join(usual.folder, 'relative.node')];
    expect(useOf(usual, { override: './relative.node' })).toEqual({ loaded });
    expect(useOf(usual, { override: `${'../'.repeat(30)}${other}` })).toEqual({ loaded: [other] });
  });

  it.skipIf(process.platform === 'win32')(
    'is a missing file where it is relative and there is no working directory',
    () => {
      const gone = join(newFolder(), 'gone');
      mkdirSync(gone);
      // By a shell, which deletes the folder before Node starts: Node remembers its working
      // directory.
      const command = ['sh', '-c', 'rmdir "$PWD" && exec "$@"', 'sh', process.execPath];
      const use = useOf(usual, { command, cwd: gone, override: 'other.node' });
      expect(partsOf(use)).toMatchObject({ tried: '  other.node: not there' });
    },
  );

  it('may be set after the import, before the first use', () => {
    const script = written(
      usual.folder,
      'late.mjs',
      `import * as allstop from 'allstop';
       import { say, use } from './helpers.mjs';
       process.env.ALLSTOP_BINARY = ${JSON.stringify(other)};
       say(use(allstop));`,
    );
    expect(run(script)).toEqual([{ loaded: [other] }]);
  });

  it('may be corrected after a failure', () => {
    const script = written(
      usual.folder,
      'corrected.mjs',
      `import * as allstop from 'allstop';
       import { say, use } from './helpers.mjs';
       say(use(allstop));
       say(use(allstop));
       process.env.ALLSTOP_BINARY = ${JSON.stringify(other)};
       say(use(allstop));`,
    );
    const [first, second, third] = run(script, { override: '/nowhere/allstop.node' });
    expect(partsOf(first).why).toBe('ALLSTOP_BINARY names a file that is not there');
    expect(second).toEqual(first);
    expect(third).toEqual({ loaded: [other] });
  });

  it('is the only one that is tried', () => {
    const { tried, remedy } = failureOf(project({ compiled: true, prebuilt: true }), {
      override: '/nowhere/allstop.node',
    });
    expect(tried).toBe('  /nowhere/allstop.node: not there');
    expect(remedy).toBe('correct or unset it');
  });

  describe('holds for a worker', () => {
    const ways = [
      ['that inherits the environment', '', ''],
      ['with an environment of its own', '{ env: {} }', ''],
      ['with another override', "{ env: { ALLSTOP_BINARY: '/nowhere/allstop.node' } }", ''],
      ['that is started in another working directory', '', "process.chdir('/');"],
    ] as const;
    let said: Use[];
    beforeAll(() => {
      written(
        usual.folder,
        'worker.mjs',
        `import { Coordinator } from 'allstop';
         import { loaded, say } from './helpers.mjs';
         say({ loaded: loaded() });
         Coordinator.current().requestStop();`,
      );
      const script = written(
        usual.folder,
        'spawn.mjs',
        `import { Coordinator } from 'allstop';
         import { loaded, say } from './helpers.mjs';
         ${ways
           .map(
             ([, options, before]) => `{
               const coord = new Coordinator();
               ${before}
               coord.spawn(new URL('worker.mjs', import.meta.url)${options && `, ${options}`});
               await coord.join();
               say({ loaded: loaded() });
             }`,
           )
           .join('\n')}`,
      );
      said = run(script, { cwd: usual.folder, override: 'relative.node' });
    });

    it.each(ways.map(([which], at) => [which, at] as const))('%s', (_, at) => {
      const loaded = [join(usual.folder, 'relative.node')];
      expect(said.slice(2 * at, 2 * at + 2)).toEqual([{ loaded }, { loaded }]);
    });
  });

  it('may be given to a worker alone', () => {
    const script = written(
      usual.folder,
      'alone.mjs',
      `import { Worker } from 'node:worker_threads';
       new Worker(new URL('use.mjs', import.meta.url), { env: { ALLSTOP_BINARY: ${JSON.stringify(other)} } });`,
    );
    expect(run(script)).toEqual([{ loaded: [other] }]);
  });
});

describe('a file that does not load', () => {
  const compile = (name: string, code: string, ...args: string[]): string => {
    const source = written(files, `${name}.c`, code);
    const path = join(files, name);
    execFileSync('cc', ['-shared', '-fPIC', '-o', path, source, ...args]);
    return path;
  };
  const notLoaded = (path: string) => failureOf(usual, { override: path });
  const another = `set ALLSTOP_BINARY to a binary for ${platform}, or unset it`;

  type Case = [which: string, make: () => string, why: string | RegExp];
  const anywhere: Case[] = [
    ['is a folder', () => dirname(written(files, 'd.node/index.js', '')), 'it is a directory'],
    [
      'has another name',
      () => written(files, 'allstop.so', readFileSync(compiledBinary)),
      'the name of a native addon ends in .node',
    ],
    ['is empty', () => written(files, 'empty.node', ''), /^it is damaged, or for another platform/],
    [
      'is a text',
      () => written(files, 'text.node', 'words '.repeat(1_000)),
      /^it is damaged, or for another platform/,
    ],
    [
      'is for Windows',
      () => written(files, 'windows.node', 'MZ'.padEnd(9_000, '\0')),
      `it is damaged, or for another platform than ${platform}`,
    ],
  ];

  // These are messages of the dynamic linker of Linux.
  const onLinux: Case[] = [
    [
      'is for another processor',
      () => {
        const bytes = readFileSync(compiledBinary);
        bytes.writeUInt16LE(process.arch === 'arm64' ? 62 : 183, 18);
        return written(files, 'processor.node', bytes);
      },
      `it is not for ${process.arch}`,
    ],
    [
      'is a library and no addon',
      () => compile('library.node', 'int nothing;'),
      'it is a library, not a native addon for Node',
    ],
    [
      'is the addon of another package',
      () =>
        compile(
          'foreign.node',
          'void *napi_register_module_v1(void *env, void *exports) { return exports; }',
        ),
      'it is not the addon of allstop',
    ],
    [
      'is an addon for one version of Node',
      () =>
        compile(
          'versioned.node',
          `struct { int version; unsigned flags; void *fields[7]; } module = { 1, 0, { 0 } };
           void node_module_register(void *);
           __attribute__((constructor)) static void begin(void) { node_module_register(&module); }`,
        ),
      'it is not the addon of allstop',
    ],
    [
      'needs a Node-API of the future',
      () => compile('future.node', 'extern int node_api_of_2099; int *used = &node_api_of_2099;'),
      `it needs node_api_of_2099, which node ${process.version} lacks`,
    ],
    [
      'needs a library that is not here',
      () => {
        const library = compile('libgone.so', 'int gone;', '-Wl,-soname,libgone.so.7');
        return compile('needs.node', 'extern int gone; int *used = &gone;', library);
      },
      'it needs libgone.so.7, which is not here',
    ],
    [
      'is a pipe',
      () => {
        const path = join(files, 'pipe.node');
        execFileSync('mkfifo', [path]);
        return path;
      },
      'it is not a regular file',
    ],
    [
      'is a link to a file of another name',
      () => {
        const path = join(files, 'link.node');
        symlinkSync(written(files, 'store-1f3870be', readFileSync(compiledBinary)), path);
        return path;
      },
      'it is a link to a file whose name does not end in .node',
    ],
    [
      'is in a folder whose name says something else',
      () => written(files, 'GLIBC_2.99 not permitted/libc.so.6/a.node', ''),
      /^it is damaged, or for another platform/,
    ],
  ];

  /** One program tries all, one after the other. */
  const uses = new Map<string, { path: string; use: Use | undefined }>();
  beforeAll(() => {
    const cases = isLinux ? [...anywhere, ...onLinux] : anywhere;
    const paths = cases.map(([, make]) => make());
    const script = written(
      usual.folder,
      'one-by-one.mjs',
      `import * as allstop from 'allstop';
       import { say, use } from './helpers.mjs';
       for (const path of process.argv.slice(2)) {
         process.env.ALLSTOP_BINARY = path;
         say(use(allstop));
       }`,
    );
    const said = run([script, ...paths]);
    for (const [at, [which]] of cases.entries()) {
      uses.set(which, { path: paths[at] as string, use: said[at] });
    }
  });

  function isRefused(which: string, why: string | RegExp) {
    const { path, use } = uses.get(which) as { path: string; use: Use | undefined };
    const failure = partsOf(use);
    expect(failure).toMatchObject({ lookedFor: platform, there: platform, remedy: another });
    expect(failure.why).toMatch(why);
    expect(failure.tried.startsWith(`  ${path}: `)).toBe(true);
    return failure;
  }

  it.each(anywhere)('%s', (which, _, why) => {
    expect(isRefused(which, why).cause).toBeTruthy();
  });

  it.skipIf(!isLinux).each(onLinux)('%s', (which, _, why) => void isRefused(which, why));

  it.skipIf(tag !== 'glibc')('is for the other C library', () => {
    const soname = '-Wl,-soname,libc.musl-x86_64.so.1';
    const library = compile('libmusl.so', 'int musl;', soname);
    const path = compile('musl.node', 'extern int musl; int *used = &musl;', library);
    expect(notLoaded(path)).toMatchObject({
      why: 'it is not for glibc, the C library of this node',
      remedy: another,
      causeCode: 'ERR_DLOPEN_FAILED',
    });
  });

  it.skipIf(!isLinux)('is cut off, anywhere in what is mapped', () => {
    const bytes = readFileSync(compiledBinary);
    const cut = project();
    for (const share of [0.0002, 0.1, 0.7]) {
      writeFileSync(prebuiltOf(cut), bytes.subarray(0, bytes.length * share));
      expect(failureOf(cut)).toMatchObject({
        why: 'it is damaged: its end is missing',
        remedy: 'reinstall allstop',
      });
    }
  });

  it.skipIf(!isLinux)('and the error has what Node said', () => {
    const path = written(files, 'said.node', 'words '.repeat(1_000));
    expect(notLoaded(path)).toMatchObject({
      tried: `  ${path}: invalid ELF header`,
      cause: `${path}: invalid ELF header`,
      causeCode: 'ERR_DLOPEN_FAILED',
    });
  });

  const asNobody = process.getuid?.() === 0 ? { uid: 65_534 } : {};
  const canRun = spawnSync(process.execPath, ['-e', ''], asNobody).status === 0;
  it.skipIf(process.platform === 'win32' || !canRun)('may not be read', () => {
    const path = written(files, 'secret.node', readFileSync(compiledBinary));
    chmodSync(path, 0);
    for (const folder of [files, usual.folder]) chmodSync(folder, 0o755);
    const failure = failureOf(usual, { ...asNobody, override: path });
    expect(failure.why).toMatch(/^the file may not be read or mapped/);
    expect(failure.remedy).toMatch(/^make it readable/);
  });

  const MOUNT = 'mount -t tmpfs -o noexec none "$0"';
  const canMount =
    isLinux && spawnSync('unshare', ['-m', 'sh', '-c', MOUNT, tmpdir()]).status === 0;
  it.skipIf(!canMount)('is on a file system that is mounted noexec', () => {
    const folder = newFolder();
    const path = join(folder, 'allstop.node');
    const script = `${MOUNT} && cp "$1" "$2" && shift 2 && exec "$@"`;
    const mounted = ['unshare', '-m', 'sh', '-c', script, folder, compiledBinary, path];
    const failure = failureOf(usual, { command: [...mounted, process.execPath], override: path });
    expect(failure.why).toMatch(/mounted noexec/);
    expect(failure.remedy).toContain('copy it to another file system');
    expect(failure.causeCode).toBe('ERR_DLOPEN_FAILED');
  });
});

describe('a package without the binary', () => {
  it('that has lost its prebuilds', () => {
    const none = project({});
    expect(failureOf(none)).toEqual({
      lookedFor: platform,
      tried: expect.stringContaining(`  ${prebuiltOf(none)}: not there`),
      there: 'none',
      why: 'the prebuilds folder of the package is missing: a bundler, a copy or a cleaner left it out',
      remedy: expect.stringContaining('copy its prebuilds folder beside it, or set ALLSTOP_BINARY'),
    });
  });

  it('that was left without this platform', () => {
    const pruned = project();
    const prebuilds = join(pruned.packaged, 'prebuilds');
    renameSync(dirname(prebuiltOf(pruned)), join(prebuilds, 'plan9-mips'));
    written(prebuilds, '.DS_Store', '');
    written(prebuilds, 'plan9-mips/leftover.node', '');
    expect(failureOf(pruned)).toMatchObject({
      lookedFor: platform,
      tried: expect.stringContaining(`  ${prebuiltOf(pruned)}: not there`),
      there: `plan9-mips${tag === undefined ? '' : `-${tag}`}`,
      why: 'this copy of the package was packed, or pruned, without this platform',
      remedy: expect.stringMatching(/lockfile.*npx allstop build/),
    });
  });

  it('on a platform that none is published for', () => {
    const strange = "Object.defineProperty(process, 'platform', { value: 'plan9' });";
    const flags = ['--import', `data:text/javascript,${encodeURIComponent(strange)}`];
    expect(failureOf(usual, { flags })).toMatchObject({
      lookedFor: `plan9-${process.arch}`,
      there: platform,
      why: 'there is no prebuilt binary for this platform',
      remedy: expect.stringContaining('npx allstop build'),
    });
  });

  it('on a Node that is too old for it', () => {
    const old = "Object.defineProperty(process.versions, 'napi', { value: '7' });";
    const flags = ['--import', `data:text/javascript,${encodeURIComponent(old)}`];
    const damaged = project();
    writeFileSync(prebuiltOf(damaged), '');
    expect(failureOf(damaged, { flags })).toMatchObject({
      why: `${process.version} is too old: Node-API 8 is needed, it has 7`,
      remedy: 'use Node 20.19, or 22.3 or later',
    });
  });
});

describe('native addons that are forbidden', () => {
  const forbidden = {
    why: "Node's permission model, or --no-addons, forbids native addons",
    remedy: expect.stringMatching(/--allow-addons .*--no-addons/),
    causeCode: 'ERR_DLOPEN_DISABLED',
  };
  const reading = (...paths: string[]): string[] => [
    permissionModel,
    ...paths.map((path) => `--allow-fs-read=${path}`),
  ];

  it('by --no-addons', () => {
    expect(failureOf(usual, { flags: ['--no-addons'] })).toMatchObject(forbidden);
  });

  it('by the permission model, unless they are allowed', () => {
    const flags = reading(usual.folder);
    expect(failureOf(usual, { flags })).toMatchObject(forbidden);
    expect(useOf(usual, { flags: [...flags, '--allow-addons'] })).toEqual({
      loaded: [prebuiltOf(usual)],
    });
  });

  it('are found where nothing but the package and the program may be read', () => {
    const own = ['use.mjs', 'helpers.mjs'].map((name) => join(usual.folder, name));
    const flags = [...reading(usual.packaged, ...own), '--allow-addons'];
    expect(useOf(usual, { flags })).toEqual({ loaded: [prebuiltOf(usual)] });
  });

  it('by a folder that may not be read', () => {
    const { folder, packaged } = usual;
    const readable = ['use.mjs', 'helpers.mjs'].map((name) => join(folder, name));
    const ours = ['dist', 'package.json'].map((name) => join(packaged, name));
    const flags = [...reading(...readable, ...ours), '--allow-addons'];
    expect(failureOf(usual, { flags })).toMatchObject({
      why: "Node's permission model forbids reading the file",
      remedy: `run Node with --allow-fs-read=${packaged} and --allow-addons`,
      causeCode: 'ERR_ACCESS_DENIED',
    });
  });

  it('by an override that may not be read', () => {
    const flags = [...reading(usual.folder), '--allow-addons'];
    expect(failureOf(usual, { flags, override: compiledBinary })).toMatchObject({
      why: "Node's permission model forbids reading the file",
      remedy: `run Node with --allow-fs-read=${compiledBinary} and --allow-addons`,
    });
  });

  it('are not the cause that is named where a file is damaged', () => {
    const damaged = project();
    writeFileSync(prebuiltOf(damaged), '');
    const own = ['use.mjs', 'helpers.mjs'].map((name) => join(damaged.folder, name));
    const flags = [...reading(damaged.packaged, ...own), '--allow-addons'];
    expect(failureOf(damaged, { flags }).why).toMatch(/^it is damaged/);
  });
});

describe('the file that the workers of allstop execute', () => {
  it.each([
    ['import', "await import('allstop/worker')"],
    ['require', "createRequire(import.meta.url)('allstop/worker')"],
  ])('is no module of a program: %s says so, and the program goes on', (_, load) => {
    const { folder } = project();
    const script = written(
      folder,
      'load.mjs',
      `import { createRequire } from 'node:module';
       import { Worker } from 'node:worker_threads';
       const refused = [];
       try { ${load} } catch ({ name, code, message }) { refused.push({ name, code, message }); }
       if (process.argv[2] === 'argument') {
         new Worker(new URL(import.meta.url), { argv: ['in-worker'], workerData: { kind: 'mine' } });
       }
       console.log(JSON.stringify([process.argv[2], ...refused]));`,
    );
    const error = {
      name: 'FailedPreconditionError',
      code: 'ERR_ALLSTOP_FAILED_PRECONDITION',
      message: expect.stringContaining('runs only in workers that the package starts'),
    };
    expect(run<unknown>([script, 'argument'], { cwd: folder })).toEqual([
      ['argument', error],
      ['in-worker', error],
    ]);
  });
});

describe('a bundle', () => {
  const dist = join(dirname(compiledBinary), '../../dist');

  /** Imitates a bundler: the code of allstop in a folder that is not the package 'allstop'. */
  function bundled(folder: string, { worker = true } = {}): void {
    mkdirSync(folder, { recursive: true });
    for (const name of readdirSync(dist)) {
      if (!name.endsWith('.js') || (name === 'allstop-worker.js' && !worker)) continue;
      cpSync(join(dist, name), join(folder, name));
    }
    written(folder, 'package.json', '{ "type": "module" }');
  }

  function withBinary(folder: string): string {
    const path = join(folder, PREBUILT);
    mkdirSync(dirname(path), { recursive: true });
    copyFileSync(compiledBinary, path);
    return path;
  }

  function program(folder: string, bundle: string, code = 'say(use(allstop));'): string {
    written(folder, 'helpers.mjs', HELPERS);
    const from = JSON.stringify(pathToFileURL(join(bundle, 'index.js')).href);
    const imports = `import * as allstop from ${from};\nimport { loaded, say, use } from './helpers.mjs';\n`;
    return written(folder, 'program.mjs', imports + code);
  }

  it.each([
    ['beside the bundle', 'app/bundle', 'app/bundle'],
    ['above the bundle', 'app', 'app/bundle'],
    ['beside the program', 'program', 'app/bundle'],
  ])('finds prebuilds %s', (_, place, bundle) => {
    const folder = newFolder();
    bundled(join(folder, bundle));
    const binary = withBinary(join(folder, place));
    const script = program(join(folder, 'program'), join(folder, bundle));
    expect(run(script, { cwd: folder })).toEqual([{ loaded: [binary] }]);
  });

  it('finds the installed package, above it the prebuilds of another', () => {
    const { folder, packaged } = project();
    written(folder, 'prebuilds/linux-x64/other.node', '');
    bundled(join(folder, 'bundle'));
    const script = program(join(folder, 'bundle'), join(folder, 'bundle'));
    expect(run(script)).toEqual([{ loaded: [join(packaged, PREBUILT)] }]);
  });

  it('does not take the working directory for the folder of a program', () => {
    const folder = newFolder();
    bundled(join(folder, 'bundle'));
    withBinary(folder.concat('/elsewhere'));
    const script = readFileSync(program(folder, join(folder, 'bundle')), 'utf8');
    const helpers = pathToFileURL(join(folder, 'helpers.mjs')).href;
    const code = script.replace('./helpers.mjs', helpers);
    const [use] = run(['--input-type=module', '-e', code, 'argument'], {
      cwd: join(folder, 'elsewhere'),
    });
    expect(partsOf(use)).toMatchObject({ there: 'none' });
    expect(partsOf(use).tried).toMatch(/^( {2}\/.+: not there\n?)+$/);
  });

  it('in CommonJS finds what lies beside it, whoever loads it', async () => {
    const folder = newFolder();
    const bundle = await rolldown({
      input: join(dist, 'index.js'),
      platform: 'node',
      // Other bundlers replace import.meta.url in the same way.
      transform: { define: { 'import.meta.url': 'undefined' } },
    });
    await bundle.write({ file: join(folder, 'app/bundle.cjs'), format: 'cjs' });
    await bundle.close();
    const binary = withBinary(join(folder, 'app'));
    const script = written(
      folder,
      'runtime/program.cjs',
      `const allstop = require('../app/bundle.cjs');
       import('./helpers.mjs').then(({ say, use }) => say(use(allstop)));`,
    );
    written(folder, 'runtime/helpers.mjs', HELPERS);
    expect(run(script, { cwd: tmpdir() })).toEqual([{ loaded: [binary] }]);
  });

  const LOOP = `
    const coord = new allstop.Coordinator();
    const looper = allstop.LooperThread.loop(coord, 1, new URL('tick.mjs', import.meta.url), { name: 'ticks' });
    const ended = await coord.join().catch(({ name, code, message }) => ({ name, code, message }));
    say({ ...ended, stopped: coord.shouldStop(), alive: looper.alive });`;
  const TICK = 'export default () => { throw new RangeError("it ticks"); };';

  it('is not asked to hold the modules of the program', () => {
    const worker = readFileSync(join(dist, 'allstop-worker.js'), 'utf8');
    const imported = /\bimport\(([^)]*)\bmodule\b/.exec(worker)?.[1];
    expect(imported).toContain('/* webpackIgnore: true */');
    expect(imported).toContain('/* @vite-ignore */');
  });

  it('runs modules in its own worker', () => {
    const folder = newFolder();
    bundled(folder);
    withBinary(folder);
    written(folder, 'tick.mjs', TICK);
    expect(run(program(folder, folder, LOOP))).toEqual([
      { name: 'RangeError', message: 'it ticks', stopped: true, alive: false },
    ]);
  });

  it('without its worker says what to give to the bundler, and stops the coordinator', () => {
    const folder = newFolder();
    bundled(folder, { worker: false });
    withBinary(folder);
    written(folder, 'tick.mjs', TICK);
    const [said] = run<Failure>(program(folder, folder, LOOP));
    expect(said).toMatchObject({
      name: 'UnavailableError',
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      stopped: true,
      alive: false,
    });
    expect(said?.message).toContain(`allstop-worker.js is missing, in ${folder}`);
    expect(said?.message).toContain("add 'allstop/worker' to the bundler's entry points");
  });

  it('that has left its prebuilds behind', () => {
    const folder = newFolder();
    bundled(folder);
    expect(existsSync(join(folder, 'prebuilds'))).toBe(false);
    const [use] = run(program(folder, folder));
    expect(partsOf(use)).toMatchObject({
      there: 'none',
      why: expect.stringContaining('a bundler'),
      tried: expect.stringContaining(`  ${join(folder, PREBUILT)}: not there`),
    });
  });
});
