import { EventEmitter } from 'node:events';
import { tmpdir } from 'node:os';
import { inspect } from 'node:util';
import { BoundedQueue, Coordinator, LooperThread, QueueRunner, StragglersError } from 'allstop';
import { Checkpoint, ClusterCoordinator, ClusterSpec, LocalStrategy } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { Gate } from 'allstop/testing';
import { describe, expect, it } from 'vitest';
import { gate } from '../../support/gate.ts';

const module = new URL('../../fixtures/cluster-tasks.mjs', import.meta.url);

describe('util.inspect', () => {
  it('shows a coordinator: its state and how many threads are alive', async () => {
    const coord = new Coordinator({ name: 'app' });
    expect(inspect(coord)).toBe("Coordinator 'app' { running, 0 threads }");
    const held = gate();
    for (let i = 0; i < 3; i++) void coord.start(() => held.opened);
    coord.onStop(() => {});
    expect(inspect(coord)).toBe("Coordinator 'app' { running, 3 threads }");
    held.open();
    await coord.join();
    coord.clearStop();
    coord.requestStop();
    expect(inspect(coord)).toMatch(/^Coordinator 'app' \{ stopped, \d threads? \}$/);
    await coord.join();
    expect(inspect(coord)).toBe("Coordinator 'app' { stopped, 0 threads, joined }");
  });

  it('shows the error of a stop in one line, of whatever kind it is', () => {
    const shown = (error: unknown): string => {
      const coord = new Coordinator({ name: 'app' });
      coord.requestStop(error);
      return inspect(coord);
    };
    expect(shown(new Error('disk\nfull'))).toBe(
      "Coordinator 'app' { stopped: Error: disk, 0 threads }",
    );
    expect(shown(new Error('\u001b[31mred'))).toBe(
      String.raw`Coordinator 'app' { stopped: Error: \x1b[31mred, 0 threads }`,
    );
    expect(shown(new Error('x'.repeat(100_000))).length).toBeLessThan(200);
    expect(shown('no\nerror')).toBe(
      String.raw`Coordinator 'app' { stopped: the value "no\nerror", 0 threads }`,
    );
  });

  it('shows names as JavaScript writes them, in one line', () => {
    const coord = new Coordinator({ name: `it's\n${'long '.repeat(40)}` });
    expect(inspect({ coord })).not.toMatch(/it's\n/);
    expect(inspect(coord).split('\n')).toHaveLength(1);
  });

  it('shows queues and their runners', async () => {
    const queue = new BoundedQueue({ name: 'jobs', capacity: 2, codec: 'bytes' });
    queue.tryEnqueue(new Uint8Array(1));
    expect(inspect(queue)).toBe("BoundedQueue 'jobs' { 1 of 2 items, bytes }");
    queue.close();
    expect(inspect(queue)).toBe("BoundedQueue 'jobs' { 1 of 2 items, closed, bytes }");
    const runner = new QueueRunner(queue, [
      (): void => {
        throw new Error('none');
      },
    ]);
    expect(inspect(runner)).toBe("QueueRunner 'jobs' { 1 op, 0 threads }");
    const [thread] = runner.createThreads();
    expect(inspect(thread)).toBe("QueueRunnerThread 'QueueRunnerThread-jobs-op-1' { not started }");
    thread?.start();
    await thread?.join();
    expect(inspect(runner)).toBe("QueueRunner 'jobs' { 1 op, 0 threads, 1 error }");
  });

  it('shows loopers, also of a derived class, by its name', async () => {
    const coord = new Coordinator();
    class Ticker extends LooperThread {
      override runLoop(): void {
        coord.requestStop();
      }
    }
    const ticker = new Ticker(coord, 100, { name: 'tick' });
    expect(inspect(ticker)).toBe("Ticker 'tick' { every 100 ms, not started }");
    ticker.start();
    expect(inspect(ticker)).toBe("Ticker 'tick' { every 100 ms, running }");
    await coord.join();
    expect(inspect(ticker)).toBe("Ticker 'tick' { every 100 ms, ended }");
    expect(inspect(new LooperThread(coord, null, { target: () => {} }))).toContain('back to back');
    expect(inspect(new LooperThread(coord, Infinity, { target: () => {} }))).toContain('once');
  });

  it('shows links by what they are links to', () => {
    const coord = new Coordinator();
    const link = coord.stopOnAbort(new AbortController().signal);
    expect(inspect(link)).toBe('Link { an AbortSignal (stopOnAbort) }');
    link[Symbol.dispose]();
    expect(inspect(link)).toBe('Link { an AbortSignal (stopOnAbort), ended }');
    const closing = (source: object): string => inspect(coord.stopOnClose(source as EventEmitter));
    expect(closing(new EventEmitter())).toBe('Link { an EventEmitter, on close (stopOnClose) }');
    class FSWatcher extends EventEmitter {}
    expect(closing(new FSWatcher())).toBe('Link { an FSWatcher, on close (stopOnClose) }');
    expect(closing(new EventTarget())).toContain('an EventTarget');
    class Socket extends EventEmitter {}
    expect(closing(new Socket())).toContain('{ a Socket');
    expect(inspect(coord.stopAfter(Infinity))).toContain('(stopAfter) }');
    const hook = coord.onStop(() => {}, { name: 'flush' });
    expect(inspect(hook)).toBe("Link { the hook 'flush' (onStop) }");
  });

  it('shows a cluster and what belongs to it', async () => {
    const strategy = new LocalStrategy({ module, workers: 1 });
    expect(inspect(strategy)).toBe(
      "LocalStrategy { cluster-tasks.mjs, 1 worker, isolation 'thread' }",
    );
    const cluster = new ClusterCoordinator(strategy);
    expect(inspect(cluster)).toBe(
      'ClusterCoordinator { running, 0 queued, 0 in flight, 1 worker }',
    );
    const remote = await cluster.schedule('fail');
    expect(inspect(remote)).toBe('RemoteValue { pending }');
    await remote.fetch().catch(() => {});
    expect(inspect(remote)).toBe('RemoteValue { failed }');
    const mapped = cluster.map('double', [1, 2, 3], { concurrency: 2 });
    expect(inspect(mapped)).toBe("Mapped 'double' { not begun }");
    const first = mapped.next();
    expect(inspect(mapped)).toBe("Mapped 'double' { running, 2 ahead }");
    expect(await first).toEqual({ done: false, value: 2 });
    await mapped.return?.();
    expect(inspect(mapped)).toBe("Mapped 'double' { ended }");
    await cluster.close();
    expect(inspect(cluster)).toMatch(/^ClusterCoordinator \{ ended, 0 queued/);
    expect(inspect(new ClusterSpec({ worker: ['a:1', 'b:1'], ps: ['c:1'] }))).toBe(
      'ClusterSpec { ps: 1 task, worker: 2 tasks }',
    );
  });

  it('shows gates, checkpoints, and what each worker has of its own', async () => {
    const gateOfTest = new Gate({ name: 'before' });
    expect(inspect(gateOfTest)).toBe("Gate 'before' { closed, 0 arrivals }");
    gateOfTest.open();
    expect(inspect(gateOfTest)).toBe("Gate 'before' { open, 0 arrivals }");
    await using cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
    const checkpoint = new Checkpoint(cluster, { directory: tmpdir(), keep: 3 });
    expect(inspect(checkpoint)).toBe('Checkpoint { keeps the newest 3 }');
    const dataset = cluster.createPerWorkerDataset('numbers');
    expect(inspect(dataset)).toBe('PerWorkerDataset { one on each worker }');
    expect(inspect(dataset.iterator())).toMatch(
      /^PerWorkerValues \{ one for each worker, number \d+ \}$/,
    );
  });

  it('shows an explanation and a diagnosis as their text', async () => {
    const coord = new Coordinator({ name: 'app' });
    const explanation = coord.explain();
    expect(inspect(explanation)).toBe(String(explanation));
    const diagnosis = await coord.diagnose({ timeoutMs: 0 });
    expect(inspect(diagnosis)).toBe(String(diagnosis));
    expect(Object.keys(diagnosis)).toContain('javaScriptThreads'); // the fields are there
  });

  it('shows no credentials, no address and no query of a module', () => {
    const secret = new URL('file:///srv/tasks.mjs?token=hunter2');
    const strategy = new NatsStrategy({
      module: secret,
      servers: 'nats://localhost:4222',
      cluster: 'nightly',
      minWorkers: 2,
      user: 'me',
      pass: 'hunter2',
    });
    expect(inspect(strategy, { depth: Infinity, showHidden: true })).toBe(
      "NatsStrategy 'nightly' { tasks.mjs, waits for 2 workers }",
    );
  });

  it('keeps to the depth, and to the line of the object around', () => {
    const coord = new Coordinator({ name: 'app' });
    expect(inspect({ coord }, { depth: 0 })).toBe('{ coord: [Coordinator] }');
    expect(inspect([coord, { coord }])).toBe(
      "[\n  Coordinator 'app' { running, 0 threads },\n  { coord: Coordinator 'app' { running, 0 threads } }\n]",
    );
    expect(inspect(coord, { colors: true })).toBe(
      "Coordinator \u001b[32m'app'\u001b[39m { running, 0 threads }",
    );
    expect(inspect(coord, { customInspect: false })).toContain('Coordinator {}');
  });

  it('calls no getter, and adds no property', () => {
    class Odd extends Coordinator {
      override get name(): string {
        throw new Error('a getter was called');
      }
    }
    const odd = new Odd({ name: 'odd' });
    expect(inspect(odd)).toBe("Odd 'odd' { running, 0 threads }");
    expect(Object.keys(odd)).toEqual([]);
    for (const each in odd) expect.unreachable(each);
  });

  it('shows what only looks like one of them as Node does', () => {
    const coord = new Coordinator();
    expect(inspect(Object.create(coord))).toBe('Coordinator {}');
    expect(inspect(new Proxy(coord, {}))).toBe('Coordinator {}');
    expect(inspect(Coordinator.prototype)).toContain('{}');
    expect(inspect(Coordinator)).toMatch(/^\[class Coordinator/);
  });

  it('leaves errors to Node: the stack, the code and the fields', () => {
    const error = new StragglersError('still running: a', {
      stragglers: [{ name: 'a', kind: 'task', runningForMs: 5 }],
    });
    const text = inspect(error);
    expect(text).toMatch(/^StragglersError: still running: a\n {4}at /);
    expect(text).toContain("code: 'ERR_ALLSTOP_STRAGGLERS'");
    expect(text).toContain("{ name: 'a', kind: 'task', runningForMs: 5 }");
  });
});
