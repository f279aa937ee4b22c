/** Functions of the module that begin and end each worker of this machine. */

import { ClusterCoordinator, ClusterNotReadyError, LocalStrategy } from 'allstop/cluster';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { describeIsolations, errorOf } from '../../support/clusters.ts';
import { Visits } from '../../support/visits.ts';

const module = new URL('../../fixtures/cluster-worker-tasks.mjs', import.meta.url);

describeIsolations('workers as', (isolation) => {
  const visits = new Visits();
  let warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);

  beforeEach(async () => {
    warnings = [];
    process.on('warning', onWarning);
    await visits.open();
  });
  afterEach(async () => {
    process.off('warning', onWarning);
    await visits.close();
  });

  type Options = Partial<ConstructorParameters<typeof LocalStrategy>[0]>;
  const start = (options: Options, cancelGraceMs = 600_000): ClusterCoordinator => {
    const env = { ...process.env, VISITS: visits.path };
    const strategy = new LocalStrategy({ module, isolation, workers: 1, env, ...options });
    return new ClusterCoordinator(strategy, { cancelGraceMs });
  };
  const warned = async (): Promise<Error> => {
    while (warnings.length === 0) await new Promise((resolve) => process.once('warning', resolve));
    return warnings[0] as Error;
  };

  it('calls setup before a worker takes work, in a new worker, too', async () => {
    await using cluster = start({ setup: 'setup' });
    expect(await cluster.run('wasSetUp')).toBe(true);
    const died = errorOf(cluster.run('die', ['dying'], { retries: 0 }));
    (await visits.next('dying')).pass();
    expect((await died).message).toContain('exited with code 7');
    expect(await cluster.run('wasSetUp')).toBe(true);
  });

  it('waits for setup, and says so', async () => {
    await using cluster = start({ setup: 'heldSetup' });
    const ran = cluster.run('where');
    const visit = await visits.next('setup 0');
    const error = await errorOf(cluster.ready({ timeoutMs: 0 }));
    expect(error.message).toContain('worker:0 setting-up');
    expect(error.message).toContain("the setup function 'heldSetup' has not ended");
    visit.pass();
    expect(await ran).toMatchObject({ worker: 0, ran: 1 });
    await cluster.ready();
  });

  it('ends a worker whose setup hangs, without teardown', async () => {
    const cluster = start({ setup: 'neverSetUp', teardown: 'teardown', workers: 2 });
    const error = await errorOf(cluster.ready({ timeoutMs: 200 }));
    expect(error).toBeInstanceOf(ClusterNotReadyError);
    await cluster.close();
    expect(visits.names).toEqual([]);
  });

  it.each([
    [
      'brokenSetup',
      "Worker worker:0 could not be set up by 'brokenSetup': RangeError: no database for 0",
    ],
    ['noSuchSetup', "The module has no function 'noSuchSetup'"],
    ['notAFunction', "The module has no function 'notAFunction'"],
  ])('fails at once if no worker can be set up: %s', async (setup, text) => {
    await using cluster = start({ setup });
    const run = errorOf(cluster.run('where'));
    const error = await errorOf(cluster.ready());
    expect(error).toBeInstanceOf(ClusterNotReadyError);
    expect(error.message).toContain(text);
    expect(error.report.tasks[0]).toMatchObject({
      ready: false,
      phase: 'setup-failed',
      remedy: expect.stringContaining('correct the setup'),
    });
    expect(error.report.tasks[0].cause).toContain(text);
    expect((await run).code).toBe('ERR_ALLSTOP_UNAVAILABLE');
    expect((await run).message).toContain(text);
    if (setup === 'brokenSetup') expect((await run).cause).toBeInstanceOf(RangeError);
  });

  it('starts again the one worker that cannot be set up, and works with the others', async () => {
    await using cluster = start({ setup: 'brokenOnOne', workers: 2 });
    const lost = new Promise<[number, string]>((resolve) => {
      cluster.on('workerLost', ({ index }, { message }) => resolve([index, message]));
    });
    expect(await cluster.run('where')).toMatchObject({ worker: 0 });
    expect(await lost).toEqual([1, expect.stringContaining('no database for 1')]);
    const error = await errorOf(cluster.ready({ timeoutMs: 300 }));
    const [first, second] = error.report.tasks;
    expect(first).toMatchObject({ ready: true });
    expect(second).toMatchObject({ ready: false, cause: expect.stringContaining('for 1') });
    expect(await cluster.run('where')).toMatchObject({ worker: 0, ran: 2 });
  });

  it('calls teardown after the last function, and close waits for it', async () => {
    const cluster = start({ teardown: 'teardown', workers: 2 });
    await cluster.ready();
    expect(await cluster.run('where')).toMatchObject({ worker: 0 });
    let isClosed = false;
    const closed = cluster.close().then(() => {
      isClosed = true;
    });
    const first = await visits.next('teardown 0 after 1');
    const second = await visits.next('teardown 1 after 0');
    second.pass();
    await second.left;
    expect(isClosed).toBe(false);
    first.pass();
    await closed;
    expect(warnings).toEqual([]);
  });

  it.each([
    [
      'brokenTeardown',
      60_000, // it fails before
      /^The teardown function 'brokenTeardown' of worker:0 failed: the disk is full$/,
    ],
    ['neverTornDown', 50, /'neverTornDown' of worker:0 did not end within 50 ms/],
    ['spinningTeardown', 50, /'spinningTeardown' of worker:0 did not end within 50 ms/],
  ])(
    'warns of a teardown that goes wrong, and closes all the same: %s',
    async (teardown, graceMs, text) => {
      const cluster = start({ teardown }, graceMs);
      await cluster.ready();
      await cluster.close();
      const warning = await warned();
      expect(warning.message).toMatch(text);
      expect(warning).toMatchObject({ code: 'ALLSTOP_TEARDOWN' });
    },
  );

  it('closes when a worker dies in its teardown', async () => {
    const cluster = start({ teardown: 'dyingTeardown' });
    await cluster.ready();
    await cluster.close();
  });

  it('a teardown that does not exist is found at the start', async () => {
    await using cluster = start({ teardown: 'noSuchTeardown' });
    const error = await errorOf(cluster.ready());
    expect(error.message).toContain("The module has no function 'noSuchTeardown'");
  });
});
