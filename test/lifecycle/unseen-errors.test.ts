// Nothing fails silently: an error that a thread threw, and that the program was not given until
// it ends, is on standard error, and the exit code is 1.
import { describe, expect, it } from 'vitest';
import { runScript, startScript } from '../support/run-script.ts';

const run = (...stories: string[]) =>
  runScript('unseen-errors', stories, { execArgv: ['--expose-gc'] });
const times = (text: string): number => text.split('allstop: unhandled error of ').length - 1;

describe('an error that nobody was given', () => {
  /** Those that one process can have beside others. */
  const beside = [
    'task',
    'collected',
    'suppressed',
    'body, after that of a task',
    'hook',
    'a hook that rethrows',
    'a worker with a link',
    'task and hook',
    'spawned',
    'native',
    'function',
    'queue runner',
    'twice the same',
  ];
  const alone = [
    'exit',
    'exit in a deferred function',
    'in a worker',
    'in a worker alone',
    'in two workers that exit together',
    'in a worker with two copies of the code',
    'hook in a worker process',
    'exit listener',
  ];
  it('is written once, with its stack, beside others of the process', async () => {
    const { code, stderr } = await run(...beside);
    const written = stderr.split('allstop: unhandled error of ').slice(1);
    for (const story of beside) {
      const own = written.filter((text) => text.includes(`nobody looked at <${story}>`));
      expect(own, story).toEqual([expect.stringMatching(/^ {4}at /m)]);
    }
    expect(written).toHaveLength(beside.length);
    expect(code).toBe(1);
  });

  const tagged = [
    ...alone.map((story) => ({ story, tags: [] })),
    ...beside.map((story) => ({ story, tags: ['long'] })),
  ];
  for (const { story, tags } of tagged) {
    it(`is written once, with its stack, and the exit code is 1: ${story}`, { tags }, async () => {
      const { code, stderr } = await run(story);
      expect(stderr).toContain('nobody looked');
      expect(stderr).toMatch(/^ {4}at /m);
      expect(times(stderr)).toBe(1);
      expect(code).toBe(1);
    });
  }

  it('ends the process as before, if a link listens to another event of the worker', async () => {
    const { code, stderr } = await run('a worker with a link to another event');
    expect(stderr).toContain('RangeError: nobody looked');
    expect(code).toBe(1);
  });

  it('is written by native code if the last worker is terminated: it sets no exit code', async () => {
    const { code, stderr } = await run('in a worker that is terminated');
    expect(times(stderr)).toBe(1);
    expect(stderr).toMatch(
      /^allstop: unhandled error of the coordinator 'app', thrown by 'reader':\n {4}RangeError: nobody looked\n {8}at fail /,
    );
    expect(stderr).toContain('so the exit code stays');
    expect(code).toBe(0);
  });

  it('is written by native code if a worker throws it after the main thread has exited', async () => {
    const { code, stderr } = await run('in a worker that outlives the exit of the main thread');
    expect(times(stderr)).toBe(2);
    expect(stderr).toContain('so the exit code is 1. ');
    expect(stderr).toMatch(/so the exit code stays\n$/);
    expect(code).toBe(1);
  });

  it('of a worker says whose exit code it has set', async () => {
    const inWorker = await run('in a worker alone');
    expect(inWorker.stderr).toContain('so the exit code of this worker is 1. ');
  });

  it('is written with the name of the thread and of the coordinator', async () => {
    const { stderr } = await run('task');
    expect(stderr).toContain('so the exit code is 1. ');
    expect(stderr).toMatch(
      /^allstop: unhandled error of the coordinator 'app', thrown by 'reader':\nRangeError: nobody looked\n {4}at fail /,
    );
  });

  it('of a QueueRunner without a coordinator says where the program finds such errors', async () => {
    const { stderr } = await run('queue runner');
    expect(stderr).toContain("thrown by 'QueueRunnerThread-queue-1-fail'");
    expect(stderr).toContain('exceptionsRaised has those of a QueueRunner without a coordinator');
  });

  it.runIf(process.platform !== 'win32')(
    'is written though a slow reader has let the pipe fill',
    async () => {
      const script = startScript('unseen-errors', ['full pipe']);
      script.child.stderr?.pause();
      expect(await script.says('full')).toMatchObject({ code: 'EAGAIN' });
      script.child.stderr?.resume();
      const { code, stderr } = await script.ended;
      expect(times(stderr)).toBe(1);
      expect(code).toBe(1);
    },
  );

  it("leaves the program's own exit code as it is", async () => {
    const { code, stderr } = await run('own exit code');
    expect(stderr).toContain('nobody looked');
    expect(stderr).toContain('allstop: the exit code stays 7. ');
    expect(code).toBe(7);
  });
});

describe('nothing is written, and the exit code is 0', () => {
  const receivers = [
    'join',
    'run',
    'raise',
    'record',
    'explain',
    'signal',
    'a hook',
    'a hook with any parameters',
    'a hook with arguments',
    'a hook in native code',
    'main before a hook rethrows it',
    'another thread',
    'native code',
    'exceptionsRaised',
    'fetch',
    'a later fetch',
    'the join of a cluster',
    'a fetch that throws undefined',
  ].map((receiver) => [`the error was given to ${receiver}`, `given to ${receiver}`] as const);
  const others = [
    ['the program itself passed the error to requestStop()', 'passed'],
    ['stopOnException() swallowed it', 'swallowed'],
    ['it counts as a clean stop', 'clean'],
    ['it is an echo of the stop', 'echo'],
    ['a link made it', 'deadline'],
  ] as const;
  const all = [...receivers, ...others];

  it('when no error of the process was lost', async () => {
    expect(await run(...all.map(([, story]) => story))).toMatchObject({ code: 0, stderr: '' });
  });

  it.each(all)('when %s', { tags: 'long' }, async (_, story) => {
    expect(await run(story)).toMatchObject({ code: 0, stderr: '' });
  });
});
