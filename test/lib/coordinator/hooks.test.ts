import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Coordinator, SelfJoinError, type StopRecord, StragglersError } from 'allstop';
import { describe, expect, it } from 'vitest';
import { gate, isPending, turn } from '../../support/gate.ts';
import { runScript, saidOf } from '../../support/run-script.ts';
import { addon } from '../../support/test-addon.ts';

const hooksOf = (coord: Coordinator): [string, boolean][] =>
  coord.threads.filter(({ kind }) => kind === 'hook').map(({ name, alive }) => [name, alive]);

describe('a hook', () => {
  it('is called once a stop is requested, with the record', async () => {
    const coord = new Coordinator();
    const records: StopRecord[] = [];
    coord.onStop((record) => records.push(record));
    const error = new TypeError('broken');
    coord.requestStop(error);
    coord.requestStop(new RangeError('later'));
    await expect(coord.join()).rejects.toBe(error);
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({ kind: 'error', error, id: coord.stopRecord?.id });
  });

  it('runs in the async context in which it was registered', async () => {
    const coord = new Coordinator();
    const context = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    context.run('of the first', () => coord.onStop(() => seen.push(context.getStore())));
    coord.onStop(() => seen.push(context.getStore()));
    context.run('of the third', () =>
      coord.onStop(async () => {
        await turn();
        seen.push(context.getStore());
      }),
    );
    context.run('of the stop', () => coord.requestStop());
    await coord.join();
    expect(seen).toEqual(['of the third', undefined, 'of the first']);
  });

  it('may join the coordinator whose task requests the stop', async () => {
    const [app, pool] = [new Coordinator({ name: 'app' }), new Coordinator({ name: 'pool' })];
    app.onStop(async () => {
      pool.requestStop();
      await pool.join();
    });
    const task = pool.start(async () => {
      app.requestStop();
      await pool.waitForStop();
    });
    await app.join();
    await task;
    expect(pool.joined).toBe(true);
  });

  it('is code of the task that has registered it', async () => {
    const [app, pool] = [new Coordinator(), new Coordinator()];
    const task = pool.start(async () => {
      app.onStop(() => pool.join());
      await pool.waitForStop();
    });
    app.requestStop();
    await expect(app.join()).rejects.toThrow(SelfJoinError);
    pool.requestStop();
    await task;
  });

  it('is called, and join() ends, though the program has frozen the signal', async () => {
    const coord = new Coordinator();
    Object.freeze(coord.signal);
    const called = new Promise((resolve) => coord.onStop(resolve));
    coord.requestStop();
    expect(await called).toMatchObject({ kind: 'plain' });
    await coord.join();
  });

  it('runs after those that were registered after it, one awaited after the other', async () => {
    const coord = new Coordinator();
    const events: string[] = [];
    for (const name of ['first', 'second', 'third']) {
      coord.onStop(async () => {
        events.push(`${name} begins`);
        await turn();
        events.push(`${name} ends`);
      });
    }
    coord.requestStop();
    await coord.join();
    expect(events).toEqual([
      'third begins',
      'third ends',
      'second begins',
      'second ends',
      'first begins',
      'first ends',
    ]);
  });

  it('holds up no join before the stop, and every join after it', async () => {
    const coord = new Coordinator();
    const closed = gate();
    coord.onStop(() => closed.opened, { name: 'close' });
    await coord.join(); // there is nothing to wait for
    coord.clearStop();
    expect(hooksOf(coord)).toEqual([['close', false]]);
    coord.requestStop();
    expect(hooksOf(coord)).toEqual([['close', true]]);
    const join = coord.join();
    expect(await isPending(join)).toBe(true);
    closed.open();
    await join;
    expect(coord.explain().recentlyEnded).toMatchObject([{ name: 'close', kind: 'hook' }]);
  });

  it('is waited for by a join that had begun before the stop', async () => {
    const coord = new Coordinator();
    const [worked, closed] = [gate(), gate()];
    void coord.start(() => worked.opened);
    coord.onStop(() => closed.opened);
    const join = coord.join();
    expect(await isPending(join)).toBe(true);
    coord.requestStop();
    worked.open();
    expect(await isPending(join)).toBe(true);
    closed.open();
    await join;
  });

  it('is a straggler, by name, when it outlives the grace period', async () => {
    const coord = new Coordinator();
    coord.onStop(() => new Promise(() => {}), { name: 'close the server' });
    coord.requestStop();
    const join = coord.join({ stopGracePeriodMs: 0 });
    await expect(join).rejects.toThrow(StragglersError);
    await expect(join).rejects.toMatchObject({
      stragglers: [{ name: 'close the server', kind: 'hook' }],
    });
    expect(coord.leftBehind).toMatchObject([{ name: 'close the server', kind: 'hook' }]);
  });

  it('is told from one that runs while it waits for its turn', async () => {
    const coord = new Coordinator();
    const begun = gate();
    const hanging = new Promise<void>(() => {});
    coord.onStop(() => {}, { name: 'close db' });
    coord.onStop(() => (begun.open(), hanging), { name: 'close http' });
    coord.requestStop();
    const stoppedAt = coord.stopRecord?.requestedAt.getTime() ?? Number.NaN;
    while (Date.now() <= stoppedAt) await turn();
    await begun.opened;
    const join = coord.join({ stopGracePeriodMs: 0 });
    await expect(join).rejects.toThrow('running: close db (has not begun) close http');
    await expect(join).rejects.toMatchObject({
      stragglers: [{ name: 'close db', waitState: 'has not begun' }, { name: 'close http' }],
    });
  });

  it('runs in its turn though run() has ended meanwhile, and then not again', async () => {
    const [closing, ran] = [gate(), gate()];
    let own: Coordinator | undefined;
    let calls = 0;
    const body = (coord: Coordinator): void => {
      own = coord;
      coord.onStop(() => {
        calls++;
        ran.open();
      });
      coord.onStop(() => closing.opened, { name: 'slow' });
    };
    const ended = Coordinator.run(body, { stopGracePeriodMs: 0 });
    await expect(ended).rejects.toThrow(StragglersError);
    closing.open();
    await ran.opened;
    await turn();
    own?.clearStop();
    own?.requestStop();
    await turn().then(turn);
    expect([calls, own?.threads]).toEqual([1, []]);
  });

  it('that a deferred function has registered runs in the next turn', async () => {
    const ran = gate();
    await Coordinator.run((coord) => void coord.defer(() => void coord.onStop(ran.open)));
    await ran.opened;
  });

  it('is waited for by a native join', async () => {
    const coord = new Coordinator();
    let wasClosed = false;
    coord.onStop(async () => {
      await turn();
      wasClosed = true;
    });
    coord.requestStop();
    addon.startUnregistered(coord, 'join', 'joiner');
    await coord.join();
    expect([wasClosed, addon.result('joiner')]).toEqual([true, '0']);
  });

  it('runs in the next turn when it is registered after the stop', async () => {
    const coord = new Coordinator();
    coord.requestStop();
    let ran = false;
    coord.onStop(() => {
      ran = true;
    });
    expect([ran, hooksOf(coord)]).toEqual([false, [['hook', true]]]);
    await turn();
    expect(ran).toBe(true);
    await coord.join();
  });

  it('stands for the next stop after clearStop()', async () => {
    const coord = new Coordinator();
    const ids: string[] = [];
    coord.onStop(({ id }) => ids.push(id), { name: 'again' });
    const stops: (string | undefined)[] = [];
    for (let stop = 0; stop < 3; stop++) {
      coord.requestStop();
      stops.push(coord.stopRecord?.id);
      await coord.join();
      expect(hooksOf(coord)).toEqual([]);
      coord.clearStop();
      expect(hooksOf(coord)).toEqual([['again', false]]);
    }
    expect(ids).toEqual(stops);
  });

  it('runs for a stop that is cleared at once', async () => {
    const coord = new Coordinator();
    const seen: StopRecord[] = [];
    coord.onStop((record) => seen.push(record));
    const error = new TypeError('brief');
    coord.requestStop(error);
    coord.clearStop();
    await turn();
    expect(seen).toMatchObject([{ kind: 'error', error, suppressed: [] }]);
  });

  it('runs again, and is waited for, when another stop comes while it runs', async () => {
    const coord = new Coordinator();
    const gates = [gate(), gate()];
    let runs = 0;
    coord.onStop(() => gates[runs++]?.opened);
    coord.requestStop();
    await turn();
    coord.clearStop();
    coord.requestStop();
    const join = coord.join();
    gates[0]?.open();
    expect(await isPending(join)).toBe(true);
    expect(runs).toBe(2);
    gates[1]?.open();
    await join;
  });

  it('is gone when its link is disposed of, also after the stop if it has not begun', async () => {
    const coord = new Coordinator();
    const ran: string[] = [];
    const early = coord.onStop(() => ran.push('early'));
    const late = coord.onStop(() => ran.push('late'));
    coord.onStop(() => ran.push('kept'));
    early[Symbol.dispose]();
    early[Symbol.dispose]();
    expect(hooksOf(coord)).toHaveLength(2);
    coord.requestStop();
    late[Symbol.dispose]();
    await coord.join();
    expect(ran).toEqual(['kept']);
  });

  it('ends as it would when its link is disposed of while it runs', async () => {
    const coord = new Coordinator();
    const closed = gate();
    const link = coord.onStop(() => closed.opened);
    coord.requestStop();
    await turn();
    link[Symbol.dispose]();
    const join = coord.join();
    expect(await isPending(join)).toBe(true);
    closed.open();
    await join;
    coord.clearStop();
    expect(hooksOf(coord)).toEqual([]);
  });

  it('is told of the stop of a parent', async () => {
    const parent = new Coordinator();
    const child = parent.child();
    let via: string | undefined;
    child.onStop(({ requester }) => {
      via = requester.via;
    });
    parent.requestStop();
    await child.join();
    expect(via).toBe('parent');
  });

  it('cannot join its own coordinator', async () => {
    const coord = new Coordinator();
    coord.onStop(() => coord.join());
    coord.requestStop();
    await expect(coord.join()).rejects.toThrow(SelfJoinError);
  });

  it('keeps a coordinator that nothing else refers to, while another thread may stop it', async () => {
    let ran: (() => void) | undefined;
    const called = new Promise<void>((resolve) => {
      ran = resolve;
    });
    (() => {
      const coord = new Coordinator();
      coord.onStop(() => ran?.());
      coord.stopAfter(50);
    })();
    const { gc } = globalThis as { gc?: () => void };
    for (let turns = 0; turns < 5; turns++) {
      gc?.();
      await turn();
    }
    const alive = setTimeout(() => {}, 60_000); // a deadline keeps no event loop alive
    await called;
    clearTimeout(alive);
  });

  it('is explained', () => {
    const coord = new Coordinator();
    coord.onStop(() => {}, { name: 'close the server' });
    expect(coord.explain().toString()).toContain('close the server (hook): runs at the stop');
  });

  it('that waits for another one has not begun', async () => {
    const coord = new Coordinator();
    const held = gate();
    coord.onStop(() => {}, { name: 'close the database' });
    coord.onStop(() => held.opened, { name: 'close the server' });
    coord.requestStop();
    await turn();
    expect(coord.threads.map(({ hasBegun }) => hasBegun)).toEqual([false, undefined]);
    const text = String(coord.explain());
    expect(text).toMatch(/close the database \(hook\): has not begun, \d+ m?s after the stop\n/);
    expect(text).toMatch(/close the server \(hook\): running since /);
    expect(String(await coord.diagnose())).toMatch(
      /close the database \(hook\).*has not begun: its thread is busy, or runs the hooks that were registered after it/s,
    );
    coord.clearStop();
    coord.requestStop(); // while 'close the server' runs
    expect(coord.threads.map(({ hasBegun }) => hasBegun)).toEqual([false, undefined]);
    held.open();
    await coord.join();
  });
});

describe('a hook that fails', () => {
  const failing = (...messages: string[]): Coordinator => {
    const coord = new Coordinator();
    for (const message of messages) {
      coord.onStop(() => Promise.reject(new TypeError(message)), { name: message });
    }
    return coord;
  };

  it('fails the join, if nothing else has failed', async () => {
    const coord = new Coordinator();
    const error = new TypeError('cannot close');
    coord.onStop(() => {
      throw error;
    });
    coord.requestStop();
    await expect(coord.join()).rejects.toBe(error);
    await expect(coord.join()).rejects.toBe(error);
    expect(coord.stopRecord).toMatchObject({ kind: 'plain', suppressed: [] });
  });

  it('fails run() and disposal', async () => {
    const run = Coordinator.run((coord) => {
      coord.onStop(() => Promise.reject(new TypeError('cannot close')));
      return 7;
    });
    await expect(run).rejects.toThrow('cannot close');
    await expect(failing('cannot close')[Symbol.asyncDispose]()).rejects.toThrow('cannot close');
  });

  it('is suppressed after the error of the stop', async () => {
    const coord = failing('cannot close');
    coord.requestStop(new RangeError('first'));
    await expect(coord.join()).rejects.toThrow('first');
    expect(coord.stopRecord?.suppressed).toMatchObject([
      {
        error: { message: 'cannot close' },
        requester: { via: 'hook', threadName: 'cannot close', threadId: 0 },
      },
    ]);
  });

  it('is suppressed after the error of a thread that failed while stopping', async () => {
    const coord = failing('cannot close');
    void coord.start(async () => {
      await coord.waitForStop();
      throw new RangeError('while stopping');
    });
    coord.requestStop();
    await coord.join();
    const messages = coord.stopRecord?.suppressed.map(({ error }) => (error as Error).message);
    expect(messages).toEqual(['while stopping', 'cannot close']);
  });

  it('is suppressed after another hook that failed', async () => {
    const coord = failing('first opened', 'last opened');
    coord.requestStop();
    await expect(coord.join()).rejects.toThrow('last opened');
    expect(coord.stopRecord?.suppressed).toMatchObject([{ error: { message: 'first opened' } }]);
  });

  it('has not failed if it throws the echo of the stop', async () => {
    const coord = new Coordinator();
    coord.onStop(() => delay(60_000, undefined, { signal: coord.signal }));
    coord.requestStop();
    await coord.join();
    expect(coord.stopRecord?.suppressedCount).toBe(0);
  });

  it('does not stop the others from running', async () => {
    const coord = new Coordinator();
    let ran = false;
    coord.onStop(() => {
      ran = true;
    });
    coord.onStop(() => Promise.reject(new TypeError('cannot close')));
    coord.requestStop();
    await expect(coord.join()).rejects.toThrow('cannot close');
    expect(ran).toBe(true);
  });
});

describe('a hook that is registered where the stack is full', () => {
  it('is registered and runs, or is not there', async () => {
    const ended = await runScript('full-stack', ['hook']);
    expect(ended).toMatchObject({ code: 0, signal: null });
    expect(saidOf(ended, 'ended')).toMatchObject({ lost: 0 });
  });
});

describe('a hook of a worker', () => {
  const WORKER = `
    const { parentPort, workerData } = require('node:worker_threads');
    void import(workerData.allstop).then(({ Coordinator }) => {
      const coord = Coordinator.attach(workerData.handle);
      coord.onStop(() => {
        parentPort.postMessage('runs');
        return new Promise(() => {});
      }, { name: 'of the worker' });
      parentPort.postMessage('registered');
      parentPort.on('message', () => process.exit(0));
    });
  `;
  async function start(coord: Coordinator): Promise<Worker> {
    const allstop = new URL('../../../dist/index.js', import.meta.url).href;
    const workerData = { allstop, handle: coord.handle };
    const worker = new Worker(WORKER, { eval: true, workerData });
    expect(await once(worker, 'message')).toEqual(['registered']);
    return worker;
  }

  it('is gone, and stops nothing, when its thread ends before a stop', async () => {
    const coord = new Coordinator();
    const worker = await start(coord);
    expect(hooksOf(coord)).toEqual([['of the worker', false]]);
    await worker.terminate();
    expect([hooksOf(coord), coord.shouldStop()]).toEqual([[], false]);
    coord.requestStop();
    await coord.join();
  });

  it('runs there, and holds up the join here until its thread ends', async () => {
    const coord = new Coordinator();
    const worker = await start(coord);
    coord.requestStop();
    const join = coord.join();
    expect(await once(worker, 'message')).toEqual(['runs']);
    expect(await isPending(join)).toBe(true);
    worker.postMessage('end');
    await join;
    expect(coord.explain().recentlyEnded).toMatchObject([
      { name: 'of the worker', kind: 'hook', unobserved: true },
    ]);
  });
});

it('explain() in a hook does not list that hook', async () => {
  const coord = new Coordinator();
  const listed: string[][] = [];
  const explainNames = (): unknown => listed.push(coord.explain().threads.map(({ name }) => name));
  coord.onStop(explainNames, { name: 'the last' });
  coord.onStop(() => turn().then(explainNames), { name: 'the first' });
  coord.requestStop();
  await coord.join();
  expect(listed).toEqual([['the last'], []]);
});
