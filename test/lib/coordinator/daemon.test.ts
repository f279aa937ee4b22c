import { Coordinator, LooperThread } from 'allstop';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { gate, isPending, turn } from '../../support/gate.ts';
import { runScript } from '../../support/run-script.ts';

const module = new URL('../../fixtures/waits-for-its-stop.mjs', import.meta.url);

/** Each way to start a thread that does not end before the stop. */
const starts: Record<string, (coord: Coordinator, daemon?: boolean) => void> = {
  start: (coord, daemon) => void coord.start((same) => same.waitForStop(), { daemon }),
  LooperThread: (coord, daemon) => void LooperThread.loop(coord, 1, () => {}, { daemon }),
  spawn: (coord, daemon) => void coord.spawn(module, { daemon }),
  fork: (coord, daemon) => void coord.fork(module, [], { daemon }),
};

describe.each(Object.entries(starts))('a daemon thread by %s', (_, start) => {
  it('does not hold up a run whose body and other threads have ended', async () => {
    const work = gate();
    const run = Coordinator.run((coord) => {
      start(coord, true);
      void coord.start(() => work.opened);
      return coord;
    });
    expect(await isPending(run)).toBe(true);
    work.open();
    const coord = await run;
    expect(coord?.stopRecord).toMatchObject({ kind: 'plain', requester: { via: 'call' } });
  });

  it('is waited for otherwise, and listed', async () => {
    let own: Coordinator | undefined;
    const run = Coordinator.run((coord) => {
      own = coord;
      start(coord, false);
    });
    expect(await isPending(run)).toBe(true);
    expect(own?.threads).toMatchObject([{ daemon: false }]);
    own?.requestStop();
    await run;
  });
});

it('a thread that a daemon thread starts is waited for', async () => {
  const work = gate();
  const begun = gate();
  const run = Coordinator.run((coord) => {
    void coord.start(
      async () => {
        void coord.start(() => work.opened);
        begun.open();
        await coord.waitForStop();
      },
      { daemon: true },
    );
  });
  await begun.opened;
  expect(await isPending(run)).toBe(true);
  work.open();
  await run;
});

it('a join without a stop waits for daemon threads', async () => {
  const coord = new Coordinator();
  void coord.start((same) => same.waitForStop(), { daemon: true });
  const joined = coord.join();
  expect(await isPending(joined)).toBe(true);
  coord.requestStop();
  await joined;
});

it('daemon has to be a boolean', () => {
  const coord = new Coordinator();
  const options = { daemon: 'yes' } as never;
  const refused = { code: 'ERR_INVALID_ARG_TYPE' };
  expect(() => coord.start(() => {}, options)).toThrow(expect.objectContaining(refused));
  expect(() => coord.spawn(module, options)).toThrow(expect.objectContaining(refused));
  expect(() => coord.fork(module, [], options)).toThrow(expect.objectContaining(refused));
  expect(() => LooperThread.loop(coord, 1, () => {}, options)).toThrow(
    expect.objectContaining(refused),
  );
  expect(coord.threads).toEqual([]);
});

describe('a run that only loopers hold up', () => {
  afterEach(() => vi.useRealTimers());

  /** What is warned of within `ms` milliseconds after the body has returned. */
  async function warningsWithin(ms: number, ...daemons: (boolean | undefined)[]): Promise<unknown> {
    const heard: Error[] = [];
    const listener = (warning: Error): number => heard.push(warning);
    process.on('warning', listener);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    let own: Coordinator | undefined;
    const run = Coordinator.run(
      (coord) => {
        own = coord;
        daemons.forEach((daemon, at) => {
          const name = `looper ${at}`;
          LooperThread.loop(coord, Number.POSITIVE_INFINITY, () => {}, { name, daemon });
        });
      },
      { name: 'app' },
    );
    await turn().then(turn);
    await vi.advanceTimersByTimeAsync(ms);
    await turn();
    own?.requestStop();
    await run;
    process.off('warning', listener);
    vi.useRealTimers();
    return heard;
  }

  it('is warned of after ten seconds, once in a process, unless a looper says `daemon: false`', async () => {
    expect(await warningsWithin(9_999, undefined)).toEqual([]);
    expect(await warningsWithin(60_000, false, undefined)).toEqual([]);
    expect(await warningsWithin(60_000, undefined, true, undefined)).toMatchObject([
      {
        name: 'OnlyLoopersWarning',
        code: 'ALLSTOP_ONLY_LOOPERS',
        message: expect.stringMatching(/'app'.*'looper 0', 'looper 2'$/),
        detail: expect.stringMatching(
          /waitForStop\(\).*requestStop\(\).*daemon: true.*daemon: false/s,
        ),
      },
    ]);
    expect(await warningsWithin(60_000, undefined)).toEqual([]);
  });

  it('is warned of once, though several threads have one', { tags: 'long' }, async () => {
    const { stderr, code } = await runScript('two-looper-runs', []);
    expect(stderr.match(/ALLSTOP_ONLY_LOOPERS/g)).toHaveLength(1);
    expect(code).toBe(0);
  });
});
