// `node app | pretty` and Ctrl-C: the reader of the output dies of the same key.

import { describe, expect, it } from 'vitest';
import { startScript } from '../support/run-script.ts';

/** @returns the exit code and standard error of a program whose output nobody reads any more */
async function unread(...args: string[]): Promise<{ code: number | null; stderr: string }> {
  const script = startScript('closed-output', args);
  await script.says('ready');
  script.child.stdout?.destroy();
  script.kill('SIGUSR2');
  const { code, stderr } = await script.ended;
  return { code, stderr };
}

const LINE =
  'allstop: nobody reads the output of this process any more: what it writes after SIGINT is lost\n';

describe.runIf(process.platform !== 'win32')('output that nobody reads after Ctrl-C', () => {
  it.each([
    ['before', 'uncaught errors end it'],
    ['after', 'uncaught errors end it'],
    ['before', 'uncaught'],
    ['after', 'uncaught'],
  ])(
    'is one line, and the stop is in order: the signal comes %s the error (%s)',
    async (when, u) => {
      const { code, stderr } = await unread('signal', when, u);
      expect(stderr).toHaveLength(LINE.length + 'closed\n'.length);
      expect(stderr).toContain(LINE);
      expect(stderr).toContain('closed\n');
      expect(code).toBe(130);
    },
  );

  it('is the error that it is where there was no signal', async () => {
    const { code, stderr } = await unread('nothing', 'before', 'uncaught errors end it');
    expect(stderr).toContain('Error: write EPIPE');
    expect(stderr).not.toContain('allstop:');
    expect(code).toBe(1);
  });
});
