/** `allstop timeline`, run as a child process on files that programs have written. */
import { spawnSync } from 'node:child_process';
import { linkSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Coordinator } from 'allstop';
import { createPool } from 'allstop/pool';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gate } from '../support/gate.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'allstop-timeline-'));
const at = (name: string): string => join(folder, name);

function allstop(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const script = join(root, 'dist/cli/main.js');
  return spawnSync(process.execPath, [script, 'timeline', ...args], {
    encoding: 'utf8',
    timeout: 120_000,
  });
}

beforeAll(async () => {
  const coord = new Coordinator({ name: 'a <b> & c', stopGracePeriodMs: 0 });
  const stuck = gate();
  void coord.start(() => stuck.opened, { name: 'stuck' });
  void coord.start((own) => own.waitForStop(), { name: 'obedient' });
  coord.requestStop();
  await coord.join({ ignoreLiveThreads: true });
  const timeline = coord.timeline();
  stuck.open();
  writeFileSync(at('timeline.json'), JSON.stringify(timeline));
  writeFileSync(at('trace.json'), JSON.stringify(timeline.toChromeTrace()));
  writeFileSync(at('other-trace.json'), '{"traceEvents":[{"ph":"X"}]}');
  writeFileSync(at('later.json'), '{"version":2,"events":[]}');
  writeFileSync(at('other.json'), '[1]');
  writeFileSync(at('control.json'), '\u001b[2J\u001b]0;mine\u0007');
  writeFileSync(at('broken.json'), '{"version":1,');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('allstop timeline', () => {
  it('draws one page, the same from either form', () => {
    const { status, stdout } = allstop(at('timeline.json'), '-o', at('page.html'));
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: `${at('page.html')}: 6 events of 3 threads\n`,
    });
    const page = readFileSync(at('page.html'), 'utf8');
    expect(allstop(at('trace.json'), '--output', at('again.html')).status).toBe(0);
    expect(readFileSync(at('again.html'), 'utf8')).toBe(page);
    expect(page).toContain("Timeline of the coordinator 'a &lt;b&gt; &amp; c'");
    expect(page).not.toMatch(/<script|<link|src=|https?:/);
    expect(page).toMatch(/class="row late">.*stuck/);
    expect(page).toMatch(/class="row ">.*obedient/);
    expect(page).toContain('title="stop requested by main"');
    expect(page).toMatch(/still running, left behind/);
  });

  it('has the error, the hooks in their colour, and a lane for each worker', async () => {
    const module = new URL('data:text/javascript,export const add = (a, b) => a + b');
    const pool = createPool(module, { workers: 2 });
    await pool.run('add', [1, 2], { worker: 1 });
    const { coordinator: coord } = pool;
    coord.onStop(() => {}, { name: 'close <all>' });
    coord.requestStop(new RangeError('page 17 is missing'));
    await coord.join().catch(() => {});
    writeFileSync(at('pool.json'), JSON.stringify(coord.timeline()));
    await pool.close();
    expect(allstop(at('pool.json'), '-o', at('pool.html')).status).toBe(0);
    const page = readFileSync(at('pool.html'), 'utf8');
    expect(page).toContain('<p class="error">RangeError: page 17 is missing</p>');
    expect(page).toMatch(/close &lt;all&gt; <small>hook.*class="bar waits".*class="bar hook"/);
    expect(page).toMatch(/worker:1 <small>calls<.*title="add: /);
    expect(page).not.toContain('worker:0');
    expect(page).toContain('<i class="bar hook"></i>hook, runs');
  });

  it('says as JSON what is on the page', () => {
    const { stdout } = allstop(at('timeline.json'), '-o', at('page.html'), '--json');
    expect(JSON.parse(stdout)).toEqual({
      output: at('page.html'),
      coordinator: 'a <b> & c',
      events: 6,
      threads: 3,
    });
  });

  it.each([
    ['control.json', /^allstop: [^\p{Cc}]* is not JSON: [^\p{Cc}]*\n$/u],
    ['missing.json', /Cannot read '.*missing\.json': ENOENT/],
    ['broken.json', /'.*broken\.json' is not JSON: .*Expected the JSON of coord\.timeline\(\)/],
    ['other.json', /'.*other\.json' is no timeline\. Expected/],
    ['later.json', /is a timeline of version 2; this allstop reads 1/],
    ['other-trace.json', /is a Chrome trace without the events of a coordinator/],
  ])('refuses %s, says why, and writes nothing', (name, why) => {
    const { status, stdout, stderr } = allstop(at(name), '-o', at('refused.html'));
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(why);
    expect(() => readFileSync(at('refused.html'))).toThrow('ENOENT');
  });

  it.each([
    ['at', '"1"'],
    ['at', '1e308'],
    ['type', '1'],
    ['thread', '{}'],
    ['id', '"1"'],
    ['kind', '{}'],
    ['stop', '[]'],
    ['via', '1'],
    ['error', '{"a":1}'],
    ['queue', '7'],
    ['call', '"1"'],
    ['function', 'null'],
    ['worker', '"<b>"'],
  ])('refuses an event whose %s is %s', (field, value) => {
    const event = { at: 1, type: 'stop-requested', ...JSON.parse(`{"${field}":${value}}`) };
    const { events, ...rest } = JSON.parse(readFileSync(at('timeline.json'), 'utf8'));
    writeFileSync(at('foreign.json'), JSON.stringify({ ...rest, events: [...events, event] }));
    const { status, stderr } = allstop(at('foreign.json'), '-o', at('refused.html'));
    expect(status).toBe(1);
    expect(stderr).toContain(`is no timeline: the '${field}' of event ${events.length} is wrong`);
  });

  it('reads a file that an editor or another program has written', { tags: 'long' }, () => {
    const data = JSON.parse(readFileSync(at('timeline.json'), 'utf8'));
    const call = { at: 1, type: 'call-started', call: 1 };
    const many = Array.from({ length: 150_000 }, (_, i) => ({
      at: 2 + i / 1_000,
      type: 'first-seen',
      thread: `t${i}`,
      stop: 1,
    }));
    const stop = { at: 0, type: 'stop-requested', stop: 1 };
    const ended = { at: 200, type: 'call-ended', call: 1 };
    const events = [stop, call, ...many, ended];
    writeFileSync(at('edited.json'), `\ufeff${JSON.stringify({ ...data, events })}`);
    expect(allstop(at('edited.json'), '-o', at('edited.html'))).toMatchObject({ status: 0 });
    const page = readFileSync(at('edited.html'), 'utf8');
    expect(page).toContain('title="call: 199 ms"');
    expect(page).not.toMatch(/undefined|NaN|Infinity/);
  });

  it('does not put the page in place of its timeline', () => {
    const file = at('timeline.json');
    const before = readFileSync(file, 'utf8');
    linkSync(file, at('hard.json'));
    symlinkSync(file, at('soft.json'));
    for (const name of [join('.', 'timeline.json'), 'hard.json', 'soft.json']) {
      const { status, stderr } = allstop(file, '-o', join(folder, name));
      expect(status).toBe(1);
      expect(stderr).toMatch(/is the timeline itself: give the page another name/);
      expect(readFileSync(file, 'utf8')).toBe(before);
    }
  });

  it('says which file is missing, also where the page exists', () => {
    const { stderr } = allstop(at('missing.json'), '-o', at('timeline.json'));
    expect(stderr).toMatch(/^allstop: Cannot read '.*missing\.json': ENOENT/);
  });

  it('wants a file and a page', () => {
    for (const args of [[], [at('timeline.json')], [at('timeline.json'), 'b', '-o', at('c')]]) {
      expect(allstop(...args)).toMatchObject({ status: 2, stdout: '' });
    }
  });
});
