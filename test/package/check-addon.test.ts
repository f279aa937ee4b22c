/** `allstop check-addon` on addons that crash, hang and fail, and on one that does not. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'allstop-check-addon-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Row = { runtime: string; phase: string; workers: number; result: string };

const here = `Node.js ${process.versions.node}`;
const addonFile = (name: string): string =>
  join(root, `test/addons/test-addon/build/Release/${name}.node`);

/** The path of a script with this text. */
function script(text: string): string {
  const path = join(folder, `script-${Math.random()}.mjs`);
  writeFileSync(path, text);
  return path;
}

function checkAddon(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const command = join(root, 'dist/cli/main.js');
  return spawnSync(process.execPath, [command, 'check-addon', ...args], { encoding: 'utf8' });
}

/** The rows of the JSON, of the runtime of this test only. */
function rowsOf(addon: string, text: string, ...args: string[]): Row[] {
  const named = ['--exercise', script(text), '--runtimes', process.execPath, ...args];
  const { status, stdout } = checkAddon(addonFile(addon), ...named, '--json');
  const rows = JSON.parse(stdout) as Row[];
  expect(rows).toHaveLength(21);
  expect(status).toBe(rows.every(({ result }) => result === 'ok') ? 0 : 1);
  return rows;
}

const resultsOf = (rows: Row[], phase: RegExp): string[] => [
  ...new Set(rows.filter((row) => phase.test(row.phase)).map(({ result }) => result)),
];

describe('an addon whose thread calls a function of an ended worker', () => {
  it('crashes once it has been used, and the table says how and when', () => {
    const ticks = script('export default (addon) => new Promise((done) => addon.tick(done));');
    const args = [addonFile('careless'), '--exercise', ticks, '--runtimes', process.execPath];
    const { status, stdout, stderr } = checkAddon(...args);
    expect({ status, stderr }).toEqual({ status: 1, stderr: `allstop: 21 cases on ${here}\n` });
    // Where a thread is when its code goes is a matter of luck: a single case may get through.
    expect(stdout).toMatch(/^Node\.js [\d.]+: \d+ of 21 cases not ok\nphase /);
    expect(stdout).toMatch(
      /^(?:running|done), \w+ +[12] +SIG(?:SEGV|ABRT) {2,}(?:while|after) (?:the )?worker/m,
    );
    expect(stdout).not.toMatch(/^loaded/m);
  });
});

describe('an addon that calls functions and cannot bear their exceptions', () => {
  it('crashes when they throw', { tags: 'long' }, () => {
    const rows = rowsOf(
      'thrower',
      'export default (addon) => new Promise((done) => addon.callUnguarded(done));',
    );
    expect(resultsOf(rows, /callback throws/)).toEqual(['SIGABRT']);
  });
});

describe('an addon whose first environment takes along what all environments share', () => {
  it('crashes when it is used again', { tags: 'long' }, () => {
    const rows = rowsOf('careless', 'export default (addon) => addon.count();');
    expect(resultsOf(rows, /used again/)).toEqual(['SIGSEGV']);
    expect(resultsOf(rows, /^(?!.*used again)/)).toEqual(['ok']);
  });
});

describe('an addon that uses the lifetime kit', () => {
  it('is ok in each phase, however its worker ends, alone and beside another', {
    tags: 'long',
  }, () => {
    const rows = rowsOf(
      'survivor',
      'export default (addon) => new Promise((done) => addon.post(done, "posts", 2));',
    );
    expect(rows.slice(0, 2)).toEqual([
      { runtime: here, phase: 'loaded, terminated', workers: 1, result: 'ok' },
      { runtime: here, phase: 'loaded, terminated', workers: 2, result: 'ok' },
    ]);
    expect(resultsOf(rows, /./)).toEqual(['ok']);
    const phases = ['loaded', 'running', 'done'].flatMap((phase) =>
      ['terminated', 'exits', 'throws'].map((ending) => `${phase}, ${ending}`),
    );
    phases.push('running, callback throws');
    expect(rows.map(({ phase }) => phase)).toEqual([
      ...phases.flatMap((phase) => [phase, phase]),
      'done, used again',
    ]);
  });
});

describe('an exercise', () => {
  it('that fails is an error of its own, not a crash', { tags: 'long' }, () => {
    const rows = rowsOf('survivor', 'export default () => { throw new Error("no device"); };');
    expect(resultsOf(rows, /^loaded/)).toEqual(['ok']);
    expect(resultsOf(rows, /^running|^done/)).toEqual(['error: no device']);
  });

  it('that throws an object without a prototype is told by its message', { tags: 'long' }, () => {
    const thrown = '{ __proto__: null, message: "no device" }';
    const rows = rowsOf('survivor', `export default () => { throw ${thrown}; };`);
    expect(resultsOf(rows, /^running|^done/)).toEqual(['error: no device']);
  });

  it('that fails in every case is told once, without a table', { tags: 'long' }, () => {
    const wrong = script('export const x = 1;');
    const args = [addonFile('survivor'), '--exercise', wrong, '--runtimes', process.execPath];
    const { status, stdout } = checkAddon(...args);
    expect(status).toBe(1);
    expect(stdout.replaceAll(/\s+/g, ' ').trim()).toBe(
      `Node.js ${process.versions.node}: 21 cases, none could be run The exercise itself failed: ` +
        `${wrong} must export a function: export default async (addon) => {}`,
    );
  });

  it('that fails is told last, beside what the addon exports', { tags: 'long' }, () => {
    const wrong = script('export default (addon) => addon.begin();');
    const args = [addonFile('survivor'), '--exercise', wrong, '--runtimes', process.execPath];
    const { status, stdout } = checkAddon(...args);
    expect(status).toBe(1);
    const last = stdout.trimEnd().split('\n').slice(-2);
    expect(last).toEqual([
      'The exercise itself failed: addon.begin is not a function',
      expect.stringMatching(/^The addon exports: (?:\w+, )*post/),
    ]);
    expect(stdout).not.toContain('surviving-addons.md');
  });

  it('that is missing is one in each case', { tags: 'long' }, () => {
    const rows = rowsOf('survivor', 'export const exercise = () => {};');
    expect(resultsOf(rows, /./)).toEqual([expect.stringContaining('must export a function')]);
  });

  it('has its afterwards() called after each end, in another worker', { tags: 'long' }, () => {
    const log = join(folder, 'afterwards.txt');
    const rows = rowsOf(
      'survivor',
      `import { appendFileSync } from 'node:fs';
      import { isMainThread } from 'node:worker_threads';
      let used = false;
      export default () => { used = true; };
      export const afterwards = async () =>
        appendFileSync(${JSON.stringify(log)}, \`\${used} \${isMainThread}\\n\`);`,
    );
    expect(resultsOf(rows, /./)).toEqual(['ok']);
    // 10 cases with one worker, 11 with two, and a third worker in one.
    expect(readFileSync(log, 'utf8')).toBe('false false\n'.repeat(32));
  });
});

/** A case's process, as check-addon starts it. The exercise is of `text`; the addon is an object. */
function caseProcess(text: string) {
  const addon = join(folder, 'addon.cjs');
  writeFileSync(addon, 'module.exports = {};');
  const rest = { phase: 'done', ending: 'exits', workers: 1, addon, afterMs: 0 };
  const order = JSON.stringify({ ...rest, script: script(text) });
  const child = spawn(process.execPath, [join(root, 'dist/cli/case-process.js'), order]);
  child.stderr.setEncoding('utf8');
  return child;
}

describe('the process of a case', () => {
  it('tells all to a parent that reads late, though the script has filled the pipe', async () => {
    const child = caseProcess(
      `export default () => { process.stdout.write('x'.repeat(4_000_000)); console.error('full'); };`,
    );
    let [stdout, stderr] = ['', ''];
    await new Promise((full) => child.stderr.once('data', full));
    child.stderr.on('data', (text: string) => (stderr += text));
    for await (const text of child.stdout) stdout += text;
    expect(stderr).toBe('');
    expect(stdout).toContain('"done":true');
  });

  it('ends when its parent has ended, though its exercise never does', async () => {
    const child = caseProcess(
      `export default () => { console.error('begun'); return new Promise(() => setInterval(() => {}, 1e6)); };`,
    );
    await new Promise((begun) => child.stderr.once('data', begun));
    child.stdin.destroy(); // as the parent's end does
    expect(await new Promise((end) => child.once('exit', (_, by) => end(by)))).toBe('SIGKILL');
  });
});

describe('an exercise whose thread throws what is no error', () => {
  it('is told so', { tags: 'long' }, () => {
    const thrown = 'export default () => new Promise(() => setImmediate(() => { throw null; }));';
    expect(resultsOf(rowsOf('survivor', thrown), /^done/)).toEqual(['error: null']);
  });

  it('or what could steer a terminal, is told without that', { tags: 'long' }, () => {
    const wrong = script('export default () => { throw "no \\u001b[2Jdevice"; };');
    const args = ['--exercise', wrong, '--runtimes', process.execPath];
    const { stdout } = checkAddon(addonFile('survivor'), ...args);
    expect(stdout).toContain('failed: no \\x1b[2Jdevice');
    expect(stdout).not.toContain('\u001b');
  });
});

describe('an addon that ends the process', () => {
  it('is told by the exit code', { tags: 'long' }, () => {
    const rows = rowsOf('careless', 'export default (addon) => addon.exit();');
    expect(resultsOf(rows, /^loaded/)).toEqual(['ok']);
    expect(resultsOf(rows, /^running|^done/)).toEqual(['exit code 7']);
  });

  it('or keeps it from its end, hangs, which is told at once', { tags: 'long' }, () => {
    const hangs = script('export default (addon) => addon.hang();');
    const args = ['--exercise', hangs, '--runtimes', process.execPath, '--timeout', '5', '--json'];
    const { stdout, stderr } = checkAddon(addonFile('careless'), ...args);
    const rows = JSON.parse(stdout) as Row[];
    expect(resultsOf(rows, /^loaded/)).toEqual(['ok']);
    expect(resultsOf(rows, /^running|^done/)).toEqual(['hang']);
    const told = `allstop: did not end within 5 s: running, terminated, 1 worker, ${here}\n`;
    expect(stderr).toContain(told);
  });
});

describe('the command line of check-addon', () => {
  const file = addonFile('survivor');
  const exercise = ['--exercise', fileURLToPath(import.meta.url)];

  it.each([
    [[], "'FILE'"],
    [[file], 'needs --exercise'],
    [[file, 'other.node', ...exercise], 'too many arguments'],
    [
      [file, ...exercise, '--timeout', 'long'],
      "--timeout must be a number of seconds up to 3600, not 'long'",
    ],
    [
      [file, ...exercise, '--runtimes', '/no/such/node'],
      "--runtimes: '/no/such/node' is no Node.js",
    ],
    [[file, ...exercise, '--runtimes', 'npm'], "--runtimes: 'npm' is no Node.js, Bun or Deno"],
    [[file, ...exercise, '--servers', 'a'], "'--servers'"],
  ])('%j is wrong usage, which gets the help of the command', (args, why) => {
    const { status, stdout, stderr } = checkAddon(...args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(why);
    expect(stderr).toContain('Usage: allstop check-addon FILE --exercise SCRIPT');
  });

  it('names a file that is not there', () => {
    const { status, stderr } = checkAddon('/no/such.node', ...exercise);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: 'allstop: there is no file /no/such.node\n',
    });
  });
});
