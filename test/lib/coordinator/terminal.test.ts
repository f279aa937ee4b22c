// explain() and diagnose() in a pseudo-terminal: no line is wider than it, and none is broken twice.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const terminal = fileURLToPath(new URL('../../support/terminal.py', import.meta.url));

const PATH = `/var/lib/${'a-folder/'.repeat(8)}file`;
const program = `
  import { BoundedQueue, Coordinator } from 'allstop';
  const coord = new Coordinator({ name: 'report' });
  const queue = new BoundedQueue({ name: '${'q'.repeat(100)}', coordinator: coord, capacity: 1 });
  coord.requestStop(new Error('cannot read ${PATH}'));
  await coord.join().catch(() => {});
  console.log(String(coord.explain()));
  console.log('---');
  console.log(String(await coord.diagnose()));
`;

function shownIn(columns: number): string[] {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const node = [process.execPath, '--input-type=module', '-e', program];
  const { stdout } = spawnSync('python3', [terminal, `${columns}`, '-1', ...node], {
    cwd: root,
    encoding: 'utf8',
    env,
    timeout: 120_000,
  });
  return stdout.replaceAll('\r\n', '\n').split('---\n');
}

describe.skipIf(process.platform === 'win32')('in a terminal', () => {
  it.each([40, 80])('of %i columns, explain() and diagnose() fit', (columns) => {
    const [explained = '', diagnosed = ''] = shownIn(columns);
    for (const line of `${explained}${diagnosed}`.split('\n')) {
      expect(line.length).toBeLessThanOrEqual(columns);
    }
    expect(explained.replaceAll(/\n +/g, '')).toContain(PATH);
    expect(explained).toMatch(/^ {2}- q+$/m); // the name begins on the line of its dash
    // The first sentence has the age of the stop, which is another one and may fold elsewhere.
    const lines = explained.trimEnd().split('\n');
    const afterAge = lines.findIndex((line) => line.startsWith('The error:'));
    expect(afterAge).toBeGreaterThan(0);
    expect(diagnosed.split('\n')).toEqual(expect.arrayContaining(lines.slice(afterAge)));
  });
});
