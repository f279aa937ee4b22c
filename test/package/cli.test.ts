/** The command line and the commands that print a folder, run as child processes. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

function allstop(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const script = join(root, manifest.bin.allstop);
  return spawnSync(process.execPath, [script, ...args], { encoding: 'utf8', timeout: 120_000 });
}

/** The same in a thread, which starts in a fraction of the time: for the rows of tables. */
async function inThread(
  ...argv: string[]
): Promise<{ status: number; stdout: string; stderr: string }> {
  const script = join(root, manifest.bin.allstop);
  const worker = new Worker(script, { argv, stdout: true, stderr: true });
  const [[status], stdout, stderr] = await Promise.all([
    once(worker, 'exit'),
    textOf(worker.stdout),
    textOf(worker.stderr),
  ]);
  return { status, stdout, stderr };
}

describe('allstop', () => {
  it.each([
    ['include', 'native/include', 'allstop/allstop.h'],
    ['cmake', 'native/cmake', 'allstopConfig.cmake'],
  ])('%s prints a folder, and nothing else', (command, folder, file) => {
    const { status, stdout, stderr } = allstop(command);
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: `${join(root, folder).replaceAll('\\', '/')}\n`,
      stderr: '',
    });
    expect(existsSync(join(stdout.trimEnd(), file))).toBe(true);
  });

  it.each(['include', 'cmake'])('%s --json prints the same as JSON', (command) => {
    const { status, stdout } = allstop(command, '--json');
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ [command]: allstop(command).stdout.trimEnd() });
  });

  it('--relative prints it as seen from the working directory', () => {
    const { status, stdout } = spawnSync(
      process.execPath,
      [join(root, manifest.bin.allstop), 'include', '--relative'],
      { cwd: join(root, 'test/package'), encoding: 'utf8', timeout: 120_000 },
    );
    expect({ status, stdout }).toEqual({ status: 0, stdout: '../../native/include\n' });
    const inside = { cwd: join(root, 'native/include'), encoding: 'utf8' } as const;
    const args = [join(root, manifest.bin.allstop), 'include', '--relative'];
    expect(spawnSync(process.execPath, args, inside).stdout).toBe('.\n');
  });

  it
    .skipIf(process.platform === 'win32')
    .each([['demo'], ['include', '--relative'], ['new-addon', 'a'], ['build']])(
    'in a folder that was deleted says so: %s',
    (...args) => {
      const gone = mkdtempSync(join(tmpdir(), 'allstop-gone-'));
      const script = join(root, manifest.bin.allstop);
      const { status, stdout, stderr } = spawnSync(
        'sh',
        ['-c', `rmdir '${gone}'; exec "$0" "$@"`, process.execPath, script, ...args],
        { cwd: gone, encoding: 'utf8', timeout: 120_000 },
      );
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
      expect(stderr).toMatch(/^allstop: the working directory .* was deleted\nWhat to do: go to/);
    },
  );

  it('--version prints that of package.json', () => {
    expect(allstop('--version')).toMatchObject({ status: 0, stdout: `${manifest.version}\n` });
  });

  it.each(['--help', '-h'])('%s prints the usage, with all commands', (flag) => {
    const { status, stdout, stderr } = allstop(flag);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^Usage: allstop <command>/);
    for (const command of ['demo', 'include', 'cmake', 'doctor', 'build', 'worker', 'help']) {
      expect(stdout).toMatch(new RegExp(`^  ${command} +\\S`, 'm'));
    }
  });

  it.each([
    [['--version', '--json'], { version: expect.stringMatching(/^\d+\.\d+\.\d+/) }],
    [['--json', '-h'], { help: expect.stringMatching(/^Usage: allstop <command>/) }],
    [['help', '--json'], { help: expect.stringMatching(/^Usage: allstop <command>/) }],
    [['cmake', '-h', '--json'], { help: expect.stringMatching(/^Usage: allstop cmake/) }],
  ])('%j prints JSON', async (args, json) => {
    const { status, stdout } = await inThread(...args);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual(json);
  });

  it.each([
    [[], /command missing/],
    [['includes'], /'includes' \(Did you mean include\?\)/],
    [['help', 'doctr'], /Did you mean doctor/],
    [['worker', '--sever', 'a'], /'--sever' \(Did you mean --servers\?\)\n/],
    [['doctor', '--servers', '--cluster'], /--servers .*is a value missing/],
    [['doctor', '--servers'], /--servers .*argument missing/],
    [['worker'], /--module, --servers, --cluster\n/],
    [['check-addon'], /'FILE'/],
    [['__proto__'], /'__proto__'/],
    [['include', 'cmake'], /too many arguments/],
    [['include', '--xml'], /'--xml'/],
    [['--frob'], /'--frob'/],
    [['worker', '--threads', '2'], /Did you mean --slots\?\)\n/],
    [['worker', '--password', 'x'], /ALLSTOP_NATS_PASS\n/],
    [['worker', './tasks.mjs'], /Did you mean --module\s+\.\/tasks\.mjs\?\n/],
    [['include', '--json=yes'], /--json/],
    [['doctor', '--relative'], /'--relative'/],
    [['doctor', '--servers', 'a', '--servers', 'b'], /more than once/],
  ])('refuses %j with exit code 2', async (args, why) => {
    const { status, stdout, stderr } = await inThread(...args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(why);
    expect(stderr).toMatch(/^allstop: [^]+^Usage: allstop/m);
  });
});

describe('allstop help', () => {
  const commands = (JSON.parse(allstop('help', '--json').stdout).help as string)
    .split('Commands:')[1]
    ?.match(/^ {2}[a-z-]+/gm)
    ?.map((name) => name.trim())
    .filter((name) => name !== 'help');

  it.each(commands ?? [])('%s has options and examples', async (name) => {
    const { status, stdout } = await inThread('help', name);
    expect(status).toBe(0);
    expect(stdout).toBe((await inThread(name, '--help')).stdout);
    expect(stdout).toMatch(/^Options:$[^]*^ {2}--json +\S[^]*^Examples:$/m);
  });
});

describe('allstop demo', () => {
  it('ends by Ctrl-C, says why, and gives the exit code of the signal', async () => {
    const child = spawn(process.execPath, [join(root, manifest.bin.allstop), 'demo']);
    let said = '';
    const hint = textOf(child.stderr);
    for await (const data of child.stdout) {
      said += data;
      if (!child.killed && said.includes('looper: still here')) child.kill('SIGINT');
    }
    expect(await hint).toBe('Press Ctrl-C, or wait ten seconds until the worker fails.\n');
    expect(child.exitCode ?? (await once(child, 'exit'))[0]).toBe(130);
    expect(said).toMatch(/'demo' was stopped at [^]*the process received SIGINT/);
  });

  it('ends when its terminal is closed', async () => {
    const child = spawn(process.execPath, [join(root, manifest.bin.allstop), 'demo']);
    for await (const data of child.stdout) {
      if (!child.killed && `${data}`.includes('looper')) child.kill('SIGHUP');
    }
    // stdout has ended: so have the program and its child.
    expect(child.exitCode ?? (await once(child, 'exit'))[0]).toBe(129);
  });

  it('ends when nobody reads it any more', async () => {
    const child = spawn(process.execPath, [join(root, manifest.bin.allstop), 'demo']);
    const said = textOf(child.stderr);
    child.stdout.once('data', () => child.stdout.destroy());
    expect(await once(child, 'close')).toEqual([0, null]);
    expect(await said).not.toContain('EPIPE');
  });

  it('--json says where the program is', async () => {
    const child = spawn(process.execPath, [join(root, manifest.bin.allstop), 'demo', '--json']);
    let said = '';
    child.stdout.on('data', (data) => (said += data));
    for await (const data of child.stderr) {
      if (!child.killed && `${data}`.includes('looper')) child.kill('SIGTERM');
    }
    expect(JSON.parse(said)).toEqual({
      demo: join(root, 'examples/first/main.mjs'),
      exitCode: 143,
    });
  });
});

it.each([
  ['doctor', 'nats://u:secret@nats-1:4222'],
  ['doctor', 'u:secret@nats-1:4222'],
  ['doctor', 'secret@nats-1'],
  ['worker', 'tls://secret@h'],
  ['nats://u:secret@h', 'doctor'],
  ['worker', '--server=nats://u:secret@h'],
  ['worker', '--nats://u:secret@h'],
  ['worker', '--slots', 'nats://u:secret@h'],
])('credentials in `allstop %s %s` are refused, and not printed', async (...args) => {
  const { status, stdout, stderr } = await inThread(...args);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(/Do not put credentials on the command line/);
  expect(stderr).not.toContain('secret');
});

it.each([
  ['worker', '--token=secret'],
  ['doctor', '--pasword=secret'],
  ['worker', '-psecret'],
  ['--token=secret', 'worker'],
])('the value of an unknown option is not printed: `allstop %s %s`', async (...args) => {
  const { status, stderr } = await inThread(...args);
  expect(status).toBe(2);
  expect(stderr).toMatch(/^allstop: unknown option '--?[a-z]+'/);
  expect(stderr).not.toContain('secret');
});

it('a command that was given credentials answers with its own usage', () => {
  const { stderr } = allstop('doctor', '--servers', 'nats://u:p@h');
  expect(stderr).toMatch(/^Usage: allstop doctor /m);
});

it('a password without a user names the variable of the user', () => {
  const script = join(root, manifest.bin.allstop);
  const { status, stderr } = spawnSync(process.execPath, [script, 'doctor', '--servers', 'h'], {
    encoding: 'utf8',
    env: { ...process.env, ALLSTOP_NATS_PASS: 'secret' },
    timeout: 120_000,
  });
  expect(status).toBe(2);
  expect(stderr).toMatch(/ALLSTOP_NATS_PASS needs ALLSTOP_NATS_USER, which is not set\n/);
});

it.each(['./node_modules/@scope/tasks.mjs', 'file:///a/@scope/tasks.mjs'])(
  'the path %s has no credentials',
  (path) => {
    expect(allstop('worker', path).stderr.replaceAll(/\s+/g, ' ')).toContain(`--module ${path}?`);
  },
);

describe('allstop worker', () => {
  const folder = mkdtempSync(join(tmpdir(), 'allstop-worker-'));
  const [spec, none] = [join(folder, 'spec.json'), join(folder, 'none.json')];
  writeFileSync(spec, `\ufeff${JSON.stringify({ worker: ['a'] })}`); // as some editors do
  writeFileSync(none, JSON.stringify({ worker: 'a' }));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const module = ['--module', fileURLToPath(import.meta.url)];
  const others = ['--servers', '127.0.0.1:1', '--cluster', 'c'];

  const many = Array.from({ length: 101 }, (_, at) => `r${at}=1`).join(',');
  it.each([
    [[...others], '--module'],
    [[...module, '--cluster', 'c'], 'needs --servers'],
    [[...module, '--servers', 'h'], 'needs --cluster'],
    [
      [...module, '--servers', 'http://h', '--cluster', 'c'],
      "'http://h' is not a valid server address",
    ],
    [
      [...module, '--servers', 'u:secret@h', '--cluster', 'c'],
      'Do not put credentials on the command line',
    ],
    [[...module, '--servers', 'h', '--cluster', 'a.b'], "not 'a.b'"],
    [[...module, ...others, '--job', 'chief'], "worker or ps, not 'chief'"],
    [[...module, ...others, '--slots', '0'], '--slots must be an integer from 1'],
    [[...module, ...others, '--resources', 'gpu'], '--resources must be names and amounts'],
    [[...module, ...others, '--resources', `gpu=${'9'.repeat(400)}`], 'must be names and amounts'],
    [[...module, ...others, '--resources', many], 'at most 100'],
    [[...module, ...others, '--task', '1.5'], '--task must be an integer from 0'],
    [[...module, ...others, '--spec', spec, '--task', '1'], `--spec: ${spec} has no task worker:1`],
  ])('refuses %j with exit code 2', async (args, why) => {
    const { status, stdout, stderr } = await inThread('worker', ...args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(why);
    expect(stderr).not.toContain('secret');
  });

  it.each([
    [['--module', 'no-such-file.mjs'], '--module: there is no file '],
    [['--module', folder], `--module: ${folder} is a folder`],
    [['--module', pathToFileURL(folder).href], `--module: ${folder} is a folder`],
    [[...module, '--spec', 'no-such-file.json'], 'no-such-file.json is not a ClusterSpec: ENOENT'],
    [[...module, '--spec', none], `${none} is not a ClusterSpec: The "jobs.worker"`],
  ])('cannot work with %j: exit code 1', async (args, why) => {
    const { status, stdout, stderr } = await inThread('worker', ...others, ...args);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain(why);
  });

  it.each([
    [['--module', folder], 1, `${folder} is a folder`],
    [[...module, '--slots', '0'], 2, '--slots must be'],
    [[...module, '--slot', '1'], 2, "unknown option '--slot'"],
  ])(
    '--json with %j says why it cannot work as an event, and nothing else',
    async (args, code, why) => {
      const { status, stdout, stderr } = await inThread('worker', ...others, ...args, '--json');
      expect({ status, stdout }).toEqual({ status: code, stdout: '' });
      expect(JSON.parse(stderr)).toEqual({
        at: expect.any(String),
        event: 'failed',
        why: expect.stringContaining(why),
      });
    },
  );

  it('shows control characters of its command line as escapes', () => {
    const { stderr } = allstop('worker', ...others, '--module', 'a\u001b[2Jb');
    expect(stderr).toMatch(/there is no file .*a\\x1b\[2Jb\n$/);
  });
});

describe('nobody who reads', () => {
  it.each([
    ['stdout', ['--help'], 0],
    ['stderr', ['includes'], 2],
  ] as const)('%s: %j ends as it would', async (stream, args, status) => {
    const child = spawn(process.execPath, [join(root, manifest.bin.allstop), ...args]);
    child[stream].destroy();
    const other = stream === 'stdout' ? child.stderr : child.stdout;
    let said = '';
    other.on('data', (data) => (said += data));
    expect(await once(child, 'close')).toEqual([status, null]);
    expect(said).toBe('');
  });
});

describe('an output', () => {
  const script = join(root, manifest.bin.allstop);

  it.runIf(existsSync('/dev/full'))('that a full disk does not take is an error', () => {
    const command = 'exec "$0" "$1" help >/dev/full';
    const { status, stderr } = spawnSync('sh', ['-c', command, process.execPath, script], {
      encoding: 'utf8',
      timeout: 120_000,
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(/^allstop: the output could not be written: ENOSPC/);
  });

  it.each([
    [{ FORCE_COLOR: '1' }, true],
    [{ FORCE_COLOR: '1', NO_COLOR: '1' }, true],
    [{ FORCE_COLOR: '0' }, false],
    [{ NO_COLOR: '1' }, false],
    [{}, false],
  ])('in a pipe with %o has colour: %s', (variables, isColoured) => {
    const { FORCE_COLOR: _, NO_COLOR: __, ...rest } = process.env;
    const env = { ...rest, ...variables };
    const { stdout } = spawnSync(process.execPath, [script, 'doctor'], { encoding: 'utf8', env });
    expect(stdout.includes('\u001b[32m')).toBe(isColoured);
  });
});

describe('the built file', () => {
  // With a space, as paths of users may have.
  const folder = mkdtempSync(join(tmpdir(), 'all stop '));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('begins with a shebang', () => {
    expect(readFileSync(join(root, manifest.bin.allstop), 'utf8')).toMatch(
      /^#!\/usr\/bin\/env node\n/,
    );
  });

  it('needs no binary', () => {
    cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
    cpSync(join(root, 'package.json'), join(folder, 'package.json'));
    const { status, stdout } = spawnSync(
      process.execPath,
      [join(folder, manifest.bin.allstop), 'include'],
      { encoding: 'utf8', timeout: 120_000 },
    );
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: `${join(folder, 'native/include').replaceAll('\\', '/')}\n`,
    });
  });
});
