// stopOnUncaught() and adoptWorkers(), in processes of their own.
import { describe, expect, it } from 'vitest';
import { runScript, saidOf } from '../support/run-script.ts';

describe('stopOnUncaught', () => {
  it.each([
    ['exception', 'RangeError: uncaught'],
    ['rejection', 'a string'],
  ])('stops with an uncaught %s, and the exit code is 1', async (story, error) => {
    const ended = await runScript('uncaught', [story]);
    expect(saidOf(ended, 'stopped')).toMatchObject({ error, via: 'uncaught', threadName: 'main' });
    expect(ended).toMatchObject({ code: 1, stderr: '' });
  });

  it("leaves the program's own exit code as it is", async () => {
    const ended = await runScript('uncaught', ['own exit code']);
    expect(saidOf(ended, 'stopped')).toMatchObject({ error: 'RangeError: uncaught' });
    expect(ended).toMatchObject({ code: 7, stderr: '' });
  });

  it.each(['run', 'run, in its last hook', 'run, in its last deferred function'])(
    'is an option of run(), and lasts as long: %s',
    async (story) => {
      const ended = await runScript('uncaught', [story]);
      expect(saidOf(ended, 'ran')).toMatchObject({
        error: 'RangeError: uncaught',
        listeners: [0, 0, 0],
      });
      expect(ended).toMatchObject({ code: 1, stderr: '' });
    },
  );

  it('takes the echo of a stop for no error', async () => {
    expect(await runScript('uncaught', ['echo'])).toMatchObject({ code: 0, stderr: '' });
  });

  it('sets the exit code of the process also in a worker, which lives on', async () => {
    const ended = await runScript('uncaught', ['worker']);
    saidOf(ended, 'the worker lives');
    expect(saidOf(ended, 'stopped')).toMatchObject({
      error: 'RangeError: in the worker',
      via: 'uncaught',
    });
    expect(ended).toMatchObject({ code: 1, stderr: '' });
  });
});

describe('adoptWorkers', () => {
  it('stops with the uncaught error of a Worker that is created later', async () => {
    const ended = await runScript('uncaught', ['adopted']);
    expect(saidOf(ended, 'stopped')).toMatchObject({
      error: 'RangeError: in the worker',
      via: 'worker-exit',
      threadName: 'worker-1',
    });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('ignores earlier Workers, trimmed ones, exits without an error, and ends when disposed of', async () => {
    const ended = await runScript('uncaught', ['not adopted']);
    expect(saidOf(ended, 'over')).toMatchObject({ stopped: false, listeners: [0, 0, 0] });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('these links', () => {
  it('are listed while they last, with one listener each, and leave Node as it was', async () => {
    const ended = await runScript('uncaught', ['disposed']);
    const uncaught = "the uncaught errors of the thread 'main' (stopOnUncaught)";
    expect(saidOf(ended, 'linked')).toMatchObject({
      before: [0, 0, 0],
      during: [1, 1, 1],
      links: [uncaught, uncaught, "the Workers that the thread 'main' creates (adoptWorkers)"],
    });
    expect(saidOf(ended, 'disposed')).toMatchObject({ after: [0, 0, 0], links: [] });
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain('RangeError: as ever');
  });
});
