// A pending wait keeps its event loop alive, as pending I/O does. Nothing else in the package does.

import { describe, expect, it } from 'vitest';
import { runScript, saidOf } from '../support/run-script.ts';

// A failure would take a minute, or never end.
const PROMPT_MS = 20_000;

// The join that ends with an error leaves a thread behind.
const options = { execArgv: ['--disable-warning=ALLSTOP_STRAGGLERS'] };

// From Node 24 on an AsyncLocalStorage needs no hooks.
const hooksInTasks = Number.parseInt(process.versions.node, 10) < 24;

describe.each(['main thread', 'worker'])('the event loop of a %s', (where) => {
  it.each([
    ['pending wait', { stopped: true }],
    ['pending join', { error: 'DeadlineExceededError' }],
    ['endless pending wait with a signal', { stopped: true }],
    ['looper that waits', { stopped: true }],
    ['looper whose run waits', { stopped: true }],
  ])('is kept alive by a %s', async (story, said) => {
    const ended = await runScript('event-loop', [story, where], options);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(saidOf(ended, 'ended')).toMatchObject(said);
  });

  it('is as quick as before when no task runs: nothing hooks its promises', async () => {
    const ended = await runScript('event-loop', ['hooks of promises', where], options);
    expect(saidOf(ended, 'in a task')).toMatchObject({ hooked: hooksInTasks });
    expect(saidOf(ended, 'after it')).toMatchObject({ hooked: false });
    expect(saidOf(ended, 'ended')).toMatchObject({ hooked: false });
  });

  it.each([
    ['settled wait', { stopped: true }],
    ['timed-out wait', { stopped: false }],
    ['aborted waits', { outcomes: ['rejected', 'rejected', 'rejected'] }],
    ['abandoned signal', {}],
    ['unstarted looper', {}],
  ])('is not kept alive by a %s', async (story, said) => {
    const ended = await runScript('event-loop', [story, where]);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(saidOf(ended, 'ended')).toMatchObject(said);
    expect(ended.durationMs).toBeLessThan(PROMPT_MS);
  });
});
