// Real signals to real processes.

import { rmSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { outlastThePress, PRESS_MS } from '../support/press.ts';
import { publishedCopy } from '../support/published-copy.ts';
import { runScript, type Said, saidOf, startScript } from '../support/run-script.ts';

// A failure would take 40 s.
const PROMPT_MS = 20_000;
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * Sends `signal` to a new run of a story, and `second` when the story says `event`: within one
 * press. A run of a machine so busy that this took longer is made again. Then SIGUSR2, upon which
 * the story goes on.
 */
async function pressOnce(story: string[], signal: NodeJS.Signals, event: string, second = signal) {
  for (;;) {
    const script = startScript('signals', story);
    await script.says('ready');
    const pressedAt = performance.now();
    script.kill(signal);
    await script.says(event);
    script.kill(second);
    const isOnePress = performance.now() - pressedAt < PRESS_MS - 100;
    script.kill('SIGUSR2');
    const ended = await script.ended;
    if (isOnePress) return ended;
  }
}

/** What a link does with `signal`: the same for each. */
function signalStories(signal: (typeof SIGNALS)[number]): void {
  it.each(['idle', 'blocked', 'busy'])('stops a main thread that is %s', async (way) => {
    const script = startScript('signals', ['first', way]);
    await script.says('ready');
    script.kill(signal);
    const ended = await script.ended;
    expect(ended).toMatchObject({ code: 3, signal: null, stderr: '' });
    const stop = { stopped: true, kind: 'plain', via: 'signal', signal };
    expect(saidOf(ended, 'stopped')).toMatchObject(stop);
    expect(saidOf(ended, 'heard by another listener')).toMatchObject({ signal });
    expect(ended.durationMs).toBeLessThan(PROMPT_MS);
  });

  it.each(SIGNALS)('and %s of the same press are one stop', async (second) => {
    const ended = await pressOnce(['closes'], signal, 'closing', second);
    const code = 128 + constants.signals[signal];
    expect(ended).toMatchObject({ code, signal: null, stderr: '' });
    expect(saidOf(ended, 'closed')).toMatchObject({ heard: [signal] });
  });

  it('that the process has sent itself later, when a framework has finished, is no second', async () => {
    const script = startScript('signals', ['resends', signal]);
    await script.says('ready');
    script.kill(signal);
    const ended = await script.ended;
    const code = 128 + constants.signals[signal];
    expect(ended).toMatchObject({ code, signal: null, stderr: '' });
    expect(saidOf(ended, 'closed')).toMatchObject({ heard: [signal] });
  });

  it.each([
    ['heard by others', [signal]],
    ['heard by none', []],
  ])('is one press, also when run() has ended: %s', async (others, heard) => {
    const ended = await pressOnce(['flushes', others], signal, 'flushing');
    const code = 128 + constants.signals[signal];
    expect(ended).toMatchObject({ code, signal: null, stderr: '' });
    expect(saidOf(ended, 'flushed')).toMatchObject({ heard });
  });

  it('kills again, as it does by default, when run() and the press are over', async () => {
    const script = startScript('signals', ['flushes']);
    await script.says('ready');
    script.kill(signal);
    expect(await script.says('flushing')).toMatchObject({ listeners: 0 });
    await outlastThePress();
    script.kill(signal);
    expect(await script.ended).toMatchObject({ code: null, signal, stderr: '' });
  });

  it('kills again at once when the program has disposed of the link', async () => {
    const ended = await pressOnce(['undone'], signal, 'flushing');
    expect(ended).toMatchObject({ code: null, signal, stderr: '' });
  });

  it.each(SIGNALS)('and %s later end the process at once, whoever listens', async (second) => {
    const each = async (way: string): Promise<void> => {
      const script = startScript('signals', ['second', way]);
      await script.says('ready');
      script.kill(signal);
      await script.says('stopped');
      await outlastThePress();
      script.kill(second);
      const ended = await script.ended;
      expect(ended, way).toMatchObject({ code: null, signal: second, stderr: '' });
      expect(ended.durationMs).toBeLessThan(PROMPT_MS);
    };
    const ways = second === signal ? ['idle', 'blocked', 'busy', 'hook'] : ['idle'];
    await Promise.all(ways.map(each));
  });

  it('is a first one again after clearStop()', async () => {
    const script = startScript('signals', ['cleared']);
    await script.says('ready');
    for (const time of ['first', 'second', 'third']) {
      script.kill(signal);
      expect(await script.says(`${time} stop`)).toMatchObject({ signal });
    }
    expect(await script.ended).toMatchObject({ code: 4, signal: null, stderr: '' });
  });

  it('kills, as it does by default, when the link is disposed of', async () => {
    const script = startScript('signals', ['disposed']);
    expect(await script.says('ready')).toMatchObject({ listeners: 0 });
    script.kill(signal);
    expect(await script.ended).toMatchObject({ code: null, signal, stderr: '' });
  });
}

describe.runIf(process.platform !== 'win32')('SIGINT', () => signalStories('SIGINT'));
describe.runIf(process.platform !== 'win32')('SIGTERM', { tags: 'long' }, () =>
  signalStories('SIGTERM'),
);

describe.runIf(process.platform !== 'win32')('a signal that Node ignores', () => {
  it.each(['SIGPIPE', 'SIGXFSZ'])('is ignored again when its link ends: %s', async (signal) => {
    const { code, said } = await startScript('signals', ['ignored', signal]).ended;
    expect(said).toMatchObject([{ event: 'alive' }]);
    expect(code).toBe(0);
  });
});

describe.runIf(process.platform !== 'win32')(
  'Ctrl-C, which a terminal sends to children, too',
  () => {
    it.each(['killed', 'exits'])(
      'is a stop, though a child is seen to die of it first: %s',
      async (how) => {
        const { code, stderr } = await startScript('signals', ['child', how, 'and']).ended;
        expect(stderr).toBe('');
        expect(code).toBe(130);
      },
    );

    for (const [signal, whether, tags] of [
      ['SIGINT', 'and', []],
      ['SIGINT', 'alone', ['long']],
      ['SIGTERM', 'and', ['long']],
      ['SIGTERM', 'alone', []],
    ] as [(typeof SIGNALS)[number], string, string[]][]) {
      const title = 'leaves a child of coord.fork alive, whom a hook asks, and is a stop';
      it(`${title}: ${signal}, ${whether}`, { tags }, async () => {
        const ended = await startScript('signals', ['forked', signal, whether]).ended;
        expect(saidOf(ended, 'child')).toMatchObject({ answer: 'stopped', by: signal });
        expect(ended).toMatchObject({ code: 128 + constants.signals[signal], stderr: '' });
      });
    }

    it('is an error of the child, if another error stops the program', async () => {
      const args = ['child', 'killed', 'before an error'];
      const { code, stderr } = await startScript('signals', args).ended;
      expect(stderr).toContain('TypeError: another error');
      expect(stderr).toContain("Process 'child' was killed by SIGINT");
      expect(code).toBe(1);
    });

    it.each([
      ['killed', 'was killed by SIGINT'],
      ['exits', 'exited with code 130'],
    ])('is an error of the child, if only that gets it: %s', async (how, message) => {
      const { code, stderr } = await startScript('signals', ['child', how, 'alone']).ended;
      expect(stderr).toContain(`Process 'child' ${message}`);
      expect(code).toBe(1);
    });
  },
);

describe.runIf(process.platform !== 'win32')(
  'a function of Coordinator.run that awaits in vain',
  () => {
    const LOST = /^allstop: the function that was given to Coordinator\.run has not returned .*\n$/;

    it.each([
      ['a lost body, awaited', 143, LOST],
      ['a lost body', 143, LOST],
      ['a lost body, and process.exit()', 3, /^$/],
      ['a body that seems lost', 143, /^$/],
      ['a lost body without a stop', 0, /^$/],
    ])(
      'has a line of its own at the end of the process, if it is lost: %s',
      async (way, exitCode, text) => {
        const { code, stderr } = await runScript('run-and-hang', [way]);
        expect(stderr).toMatch(text);
        expect(code).toBe(exitCode);
      },
    );
  },
);

describe.runIf(process.platform !== 'win32')('a link to signals', () => {
  it('leaves a listener that was there before as it was', async () => {
    const script = startScript('signals', ['restored']);
    await script.says('ready');
    for (const time of [1, 2, 3]) {
      script.kill('SIGINT');
      expect(await script.says(`heard ${time}`)).toMatchObject({ stopped: false });
    }
    expect(await script.ended).toMatchObject({ code: 5, signal: null, stderr: '' });
  });

  it('goes on when that of another coordinator is disposed of', async () => {
    const script = startScript('signals', ['two']);
    await script.says('ready');
    script.kill('SIGINT');
    const ended = await script.ended;
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(saidOf(ended, 'stopped')).toMatchObject({ which: [false, true] });
  });

  it('lasts as long as Coordinator.run()', async () => {
    const script = startScript('signals', ['run']);
    await script.says('ready');
    script.kill('SIGINT');
    const ended = await script.ended;
    expect(ended).toMatchObject({ code: 130, signal: null, stderr: '' });
    expect(saidOf(ended, 'ran')).toMatchObject({ value: 'SIGINT', exitCode: 130, listeners: 0 });
  });

  it.each([
    ['0', 143],
    ['7', 7],
  ])('lets run() replace the exit code %s by %i', async (chosen, code) => {
    const script = startScript('signals', ['run-with-code', chosen]);
    await script.says('ready');
    script.kill('SIGTERM');
    expect(await script.ended).toMatchObject({ code, signal: null, stderr: '' });
  });

  it('sets no exit code when run() rejects with what failed after it', async () => {
    const script = startScript('signals', ['run-that-fails']);
    await script.says('ready');
    script.kill('SIGTERM');
    const ended = await script.ended;
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(saidOf(ended, 'rejected')).toMatchObject({ message: 'the last batch' });
  });

  it('is refused in a worker, and changes nothing', async () => {
    const ended = await runScript('signals', ['worker']);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    const refused = { name: 'FailedPreconditionError', code: 'ERR_ALLSTOP_FAILED_PRECONDITION' };
    expect(saidOf(ended, 'refused')).toMatchObject({ ...refused, links: [] });
  });
});

type Process = { listeners: string[]; active: string[] };

function withoutExit(seen: Process | undefined): Partial<Process> {
  return { ...seen, listeners: seen?.listeners.filter((name) => !name.startsWith('exit ')) ?? [] };
}

describe('nothing happens to the process', () => {
  it.each([
    ['import', 'by import'],
    ['use', 'by a Coordinator with a deadline and threads'],
    ['signal', 'by an abort signal that nobody aborts'],
  ])('%s: %s', async (mode) => {
    const ended = await runScript('import-only', [mode]);
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    const { before, after } = saidOf(ended, 'imported') as unknown as Record<string, Process>;
    if (mode === 'import') expect(after).toEqual(before);
    // One listener writes, at the end, the errors that nobody was given.
    else expect(withoutExit(after)).toEqual(withoutExit(before));
    const { ms } = saidOf(ended, 'exit');
    expect(ms).toBeLessThan(PROMPT_MS);
  });
});

describe.runIf(process.platform !== 'win32')('process.removeAllListeners()', () => {
  it.each(['listening no more', 'listening again'])('cuts no link: %s', async (again) => {
    const script = startScript('taken-signals', ['kept', again]);
    await script.says('ready');
    script.kill('SIGUSR2');
    const ended = await script.ended;
    expect(ended).toMatchObject({ code: 4, signal: null, stderr: '' });
    expect(saidOf(ended, 'stopped')).toMatchObject({ signal: 'SIGUSR2' });
  });
});

describe.runIf(process.platform !== 'win32')('signals of several links', () => {
  it('are taken again from a runtime that took them', async () => {
    const script = startScript('taken-signals', ['takenBack']);
    await script.says('ready');
    script.kill('SIGINT');
    expect(await script.ended).toMatchObject({ code: 5, signal: null, stderr: '' });
  });

  it('are counted for each link', async () => {
    const script = startScript('taken-signals', ['apart']);
    await script.says('ready');
    script.kill('SIGUSR2');
    await script.says('one stopped');
    script.kill('SIGTERM');
    expect(await script.ended).toMatchObject({ code: 6, signal: null, stderr: '' });
  });
});

describe.runIf(process.platform !== 'win32')('other native handlers of a signal', () => {
  const copies: string[] = [];
  const paths = (): string[] =>
    copies.map((folder) => join(folder, 'node_modules/allstop/dist/index.js'));

  beforeAll(() => {
    for (const _ of ['second', 'third']) copies.push(publishedCopy({ compiled: true }).folder);
  });
  afterAll(() => {
    for (const folder of copies) rmSync(folder, { recursive: true });
  });

  /** @returns what the story says when its first signal has stopped it; the second ends it */
  async function twice(...args: string[]): Promise<Said> {
    const script = startScript('other-handlers', args);
    await script.says('ready');
    script.kill('SIGTERM');
    const stopped = await script.says('stopped');
    await outlastThePress();
    script.kill('SIGTERM');
    expect(await script.ended).toMatchObject({ code: null, signal: 'SIGTERM', stderr: '' });
    return stopped;
  }

  // Each digit is a copy of the package that makes a link.
  describe.each([
    ['in a row', '123123', []],
    ['alone', '12', ['long']],
    ['around', '121', ['long']],
    ['in turn', '1212', ['long']],
    ['mirrored', '1221', ['long']],
    ['between', '12131', ['long']],
    ['backwards', '21312', ['long']],
    ['often', '121212121212', ['long']],
  ])('of other copies of the package, %s: %s', (_, order, tags) => {
    it.each([
      ['do no harm', 'copies'],
      ['are put back', 'removed'],
      ['outlive those of one', 'disposed'],
    ])('%s', { tags }, async (__, story) => {
      expect(await twice(story, order, ...paths())).toMatchObject({ heard: 1 });
    });

    it('leave nothing when all links are gone', { tags }, async () => {
      const script = startScript('other-handlers', ['gone', order, ...paths()]);
      await script.says('ready');
      script.kill('SIGTERM');
      expect(await script.ended).toMatchObject({ code: null, signal: 'SIGTERM', stderr: '' });
    });
  });

  it('of an addon that call the one before are called once, and all links stop', async () => {
    expect(await twice('addon', 'calls')).toMatchObject({ heard: 1, taken: 1 });
  });

  it('of an addon that call none are called by the next link, which stops all', async () => {
    expect(await twice('addon', 'calls none')).toMatchObject({ taken: 1 });
  });

  it('of an addon are not called when the addon has put back what it found', async () => {
    expect(await twice('restored')).toMatchObject({ heard: 1, taken: 0 });
  });
});
