// The warning of threads that a join leaves behind, in processes that end at once.

import { expect, it } from 'vitest';
import { runScript } from '../support/run-script.ts';

it.each([
  ['uncaught', 1],
  ['process.exit()', 3],
])('a process that ends by %s still names the threads that are left', async (way, exitCode) => {
  const { code, stderr } = await runScript('run-and-hang', [way]);
  expect(code).toBe(exitCode);
  const warning = 'StragglersWarning: Coordinator stopped with threads still running: deaf\n';
  expect(stderr.split(warning)).toHaveLength(2); // once
});

it('names the threads that many joins leave behind, each once, and warns of nothing else', async () => {
  const { code, stderr } = await runScript('run-and-hang', ['many joins']);
  expect(code).toBe(3);
  expect(stderr.match(/still running: left-\d+\n/g)).toHaveLength(20);
  expect(new Set(stderr.match(/left-\d+/g)).size).toBe(20);
  expect(stderr).not.toContain('MaxListeners');
});

it('but not if it was told to be silent', async () => {
  const { code, stderr } = await runScript('run-and-hang', ['process.exit()'], {
    execArgv: ['--no-warnings'],
  });
  expect(code).toBe(3);
  expect(stderr).toBe('');
});
