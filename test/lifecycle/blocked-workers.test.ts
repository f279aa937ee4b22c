// A worker that is blocked in waitForStopSync() does not delay terminate() or process.exit(). If
// it did, each of these tests would take the 40 s of the worker's timeout.

import { describe, expect, it } from 'vitest';
import { runScript, saidOf } from '../support/run-script.ts';

const PROMPT_MS = 20_000;

describe.each([1, 6])('%i workers blocked in waitForStopSync()', (count) => {
  it('are terminated promptly', async () => {
    const ended = await runScript('blocked-workers', ['terminate', String(count)]);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    const { ms, codes } = saidOf(ended, 'terminated');
    expect(codes).toEqual(Array(count).fill(1));
    expect(ms).toBeLessThan(PROMPT_MS);
  });

  it('do not hold up process.exit()', async () => {
    const ended = await runScript('blocked-workers', ['exit', String(count)]);
    expect(ended).toMatchObject({ code: 7, signal: null, stderr: '' });
    expect(ended.durationMs).toBeLessThan(PROMPT_MS);
  });

  it('are woken by a stop', async () => {
    const ended = await runScript('blocked-workers', ['stop', String(count)]);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    const { ms, stopped } = saidOf(ended, 'woken');
    expect(stopped).toEqual(Array(count).fill(true));
    expect(ms).toBeLessThan(PROMPT_MS);
  });

  it('are woken by a stop that is cleared at once', async () => {
    const ended = await runScript('blocked-workers', ['clear', String(count)]);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(saidOf(ended, 'woken')).toMatchObject({ stopped: Array(count).fill(true) });
  });
});
