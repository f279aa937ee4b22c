// Stop flags of an addon that uses nothing else of allstop, in programs that do not load it.

import { describe, expect, it } from 'vitest';
import { runScript, saidOf } from '../support/run-script.ts';

describe('stop flags, in a process without allstop,', () => {
  it.each(['ends', 'terminated'])('are stopped when the worker of their signal %s', async (how) => {
    const ended = await runScript('stop-flags', [how]);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(saidOf(ended, 'result')).toMatchObject({
      before: false,
      calls: 1,
      main: '0|1',
      nothing: '0|0',
      other: '100|0',
    });
  });

  it('keep no process from its end', async () => {
    const ended = await runScript('stop-flags', ['exit']);
    expect(ended).toMatchObject({ code: 5, signal: null, stderr: '' });
  });
});
