import { setTimeout as delay } from 'node:timers/promises';
import * as errors from 'allstop';
import { type Coordinator as Coord, Coordinator, StragglersError } from 'allstop';
import { describe, expect, it } from 'vitest';
import { gate, isPending, turn } from '../../support/gate.ts';

describe('a body that returns', () => {
  it('has its value after its threads have ended, which no stop disturbs', async () => {
    const work = gate();
    let stoppedWhileWorking: boolean | undefined;
    const run = Coordinator.run((coord) => {
      void coord.start(async (same) => {
        await work.opened;
        stoppedWhileWorking = same.shouldStop();
      });
      return 7;
    });
    expect(await isPending(run)).toBe(true);
    work.open();
    expect(await run).toBe(7);
    expect(stoppedWhileWorking).toBe(false);
  });

  it('is waited for with the threads that its threads have started', async () => {
    const done: string[] = [];
    await Coordinator.run((coord) => {
      void (async () => {
        await coord.start(turn);
        await coord.start(async () => {
          await turn();
          void coord.start(async (same) => {
            await turn();
            done.push(`the grandchild, ${same.shouldStop() ? 'stopped' : 'undisturbed'}`);
          });
        });
      })();
    });
    expect(done).toEqual(['the grandchild, undisturbed']);
  });

  it('ends with a stop that the coordinator records, and is joined', async () => {
    const coord = await Coordinator.run((own) => own);
    expect([coord?.shouldStop(), coord?.joined]).toEqual([true, true]);
    const stack = expect.stringMatching(/^ *at the end of Coordinator\.run: [^]*nursery\.test/);
    expect(coord?.stopRecord).toMatchObject({ kind: 'plain', requester: { via: 'call', stack } });
    expect(String(coord?.explain())).toContain('at the end of Coordinator.run');
  });

  it('waits no longer for threads once a stop is requested', async () => {
    let own: Coord | undefined;
    const run = Coordinator.run((coord) => {
      own = coord;
      void coord.start((same) => same.waitForStop());
      return 'the value';
    });
    expect(await isPending(run)).toBe(true);
    own?.requestStop();
    expect(await run).toBe('the value');
  });

  it('waits no longer either when that stop is cleared at once', async () => {
    let own: Coord | undefined;
    let seen: boolean | undefined;
    const run = Coordinator.run((coord) => {
      own = coord;
      void coord.start(async (same) => {
        seen = await same.waitForStop();
      });
    });
    expect(await isPending(run)).toBe(true);
    own?.requestStop();
    own?.clearStop();
    await run;
    expect(seen).toBe(true);
  });

  it('does not wait for threads that were never started', async () => {
    const { LooperThread } = await import('allstop');
    expect(
      await Coordinator.run((coord) => {
        new LooperThread(coord, null, { target: () => {} });
        return 1;
      }),
    ).toBe(1);
  });

  it('rejects with the error of a thread that fails after it has returned', async () => {
    const work = gate();
    const error = new TypeError('in a task');
    const run = Coordinator.run((coord) => {
      void coord.start(() => work.opened);
      return 7;
    });
    expect(await isPending(run)).toBe(true);
    work.fail(error);
    await expect(run).rejects.toBe(error);
  });

  it('rejects with a StragglersError when a thread outlives the grace period', async () => {
    const run = Coordinator.run(
      (coord) => {
        void coord.start(() => new Promise(() => {}), { name: 'stuck' });
        coord.requestStop();
      },
      { stopGracePeriodMs: 0 },
    );
    await expect(run).rejects.toThrow(StragglersError);
    await expect(run).rejects.toThrow('stuck');
  });

  it('has its value after a deadline that counts as a clean stop', async () => {
    const run = Coordinator.run(
      async (coord) => {
        coord.stopAfter(0);
        await coord.waitForStop();
        return ['the partial result'];
      },
      { cleanStopErrors: [errors.DeadlineExceededError] },
    );
    expect(await run).toEqual(['the partial result']);
  });

  it('passes the options of a Coordinator on', async () => {
    expect(await Coordinator.run((coord) => coord.name, { name: 'runner' })).toBe('runner');
  });
});

describe('a body that throws', () => {
  it('rejects with its error, after stopping and joining', async () => {
    const error = new RangeError('in the body');
    let seen = false;
    const run = Coordinator.run((coord) => {
      void coord.start(async (same) => {
        seen = await same.waitForStop();
      });
      throw error;
    });
    await expect(run).rejects.toBe(error);
    expect(seen).toBe(true);
  });

  it('rejects with the first error, if a thread has failed before', async () => {
    const run = Coordinator.run(async (coord) => {
      await coord.start(() => Promise.reject(new TypeError('first')));
      throw new RangeError('second');
    });
    await expect(run).rejects.toThrow('first');
  });

  it('rejects with its error also when the stop before it had none', async () => {
    const run = Coordinator.run((coord) => {
      coord.requestStop();
      throw new RangeError('while ending');
    });
    await expect(run).rejects.toThrow('while ending');
  });

  it('stops the threads that a join of its own had to leave', async () => {
    let seen = false;
    const run = Coordinator.run(async (coord) => {
      await coord.join();
      void coord.start(async (same) => {
        seen = await same.waitForStop();
      });
      throw new RangeError('after the join');
    });
    await expect(run).rejects.toThrow('after the join');
    expect(seen).toBe(true);
  });

  it('rejects with its error though a thread lives on, of which a warning tells', async () => {
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
    const run = Coordinator.run(
      (coord) => {
        void coord.start(() => new Promise(() => {}), { name: 'stuck' });
        coord.requestStop();
        throw new RangeError('in the body');
      },
      { stopGracePeriodMs: 0 },
    );
    await expect(run).rejects.toThrow('in the body');
    expect((await warned).message).toMatch(/still running: stuck/);
  });
});

describe('a body that throws the echo of a stop', () => {
  it('has just ended, if the stop has no error', async () => {
    const run = Coordinator.run(async (coord) => {
      void coord.start((same) => same.requestStop());
      await delay(60_000, undefined, { signal: coord.signal });
      return 7;
    });
    expect(await run).toBeUndefined();
  });

  it('has just ended, if that stop is clean', async () => {
    const { OutOfRangeError } = await import('allstop');
    const run = Coordinator.run(async (coord) => {
      void coord.start(() => Promise.reject(new OutOfRangeError('drained')));
      await delay(60_000, undefined, { signal: coord.signal });
    });
    expect(await run).toBeUndefined();
  });

  it('has just ended, if that stop was cleared, and its threads are stopped', async () => {
    let stops = 0;
    const run = Coordinator.run(async (coord) => {
      const wait = delay(60_000, undefined, { signal: coord.signal });
      coord.requestStop();
      coord.clearStop();
      void coord.start(async (same) => {
        if (await same.waitForStop()) stops++;
      });
      await wait;
    });
    expect(await run).toBeUndefined();
    expect(stops).toBe(1);
  });

  it('rejects with the error of the stop, if it has one', async () => {
    const error = new TypeError('in a task');
    const run = Coordinator.run(async (coord) => {
      void coord.start(() => Promise.reject(error));
      await delay(60_000, undefined, { signal: coord.signal });
    });
    await expect(run).rejects.toBe(error);
  });
});

describe('after a stop without an error', () => {
  const { OutOfRangeError } = errors;
  const stops: Record<string, (coord: Coord) => void> = {
    'a plain request': (coord) => coord.requestStop(),
    'a clean error': (coord) => coord.requestStop(new OutOfRangeError('drained')),
    'an aborted signal': (coord) => void coord.stopOnAbort(AbortSignal.abort()),
  };
  const ends: Record<string, (body: (coord: Coord) => void) => Promise<unknown>> = {
    run: (body) => Coordinator.run(body),
    disposal: async (body) => {
      const coord = new Coordinator();
      body(coord);
      await coord[Symbol.asyncDispose]();
    },
  };

  for (const [how, stop] of Object.entries(stops)) {
    it.each(Object.keys(ends))(`%s rejects with the first error since ${how}`, async (end) => {
      const first = new TypeError('first');
      const ended = ends[end]?.((coord) => {
        stop(coord);
        // So many that the record keeps none of the errors that count.
        for (let i = 0; i < 20; i++) coord.requestStop(new OutOfRangeError('a late clean one'));
        void coord.start(async (same) => {
          await same.waitForStop();
          await turn();
          throw first;
        });
        coord.onStop(async () => {
          await turn().then(turn).then(turn);
          throw new RangeError('second');
        });
      });
      await expect(ended).rejects.toBe(first);
    });
  }

  it.each(Object.keys(ends))('%s resolves when only echoes and clean errors come', async (end) => {
    const ended = ends[end]?.((coord) => {
      coord.requestStop();
      void coord.start(() => Promise.reject(coord.signal.reason));
      void coord.start(() => Promise.reject(new OutOfRangeError('drained')));
    });
    expect(await ended).toBeUndefined();
  });

  it('join() throws none of the later errors', async () => {
    const coord = new Coordinator();
    coord.requestStop();
    await coord.start(() => Promise.reject(new TypeError('late')));
    await coord.join();
    expect(coord.stopRecord?.suppressed).toMatchObject([{ error: { message: 'late' } }]);
  });

  it('run rejects with an earlier error of a thread, not with that of its body', async () => {
    const run = Coordinator.run(async (coord) => {
      coord.requestStop();
      await coord.start(() => Promise.reject(new TypeError('of the thread')));
      throw new RangeError('of the body');
    });
    await expect(run).rejects.toThrow('of the thread');
  });

  it('run rejects with an error though its body threw the echo of the stop', async () => {
    const run = Coordinator.run(async (coord) => {
      coord.requestStop();
      void coord.start(() => Promise.reject(new TypeError('of the thread')));
      await delay(60_000, undefined, { signal: coord.signal });
    });
    await expect(run).rejects.toThrow('of the thread');
  });

  it('run rejects with the error, and a warning names the thread that lives on', async () => {
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
    const run = Coordinator.run(
      async (coord) => {
        void coord.start(() => new Promise(() => {}), { name: 'stuck' });
        coord.requestStop();
        await coord.start(() => Promise.reject(new TypeError('late')));
      },
      { stopGracePeriodMs: 0 },
    );
    await expect(run).rejects.toThrow('late');
    expect((await warned).message).toMatch(/still running: stuck/);
  });

  it('an error before the stop is none of those', async () => {
    await Coordinator.run(async (coord) => {
      await coord.join();
      await coord.start(() => Promise.reject(new TypeError('before')));
      expect(coord.stopRecord).toBeUndefined();
    });
  });
});
