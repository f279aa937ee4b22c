// @module-tag nats
// Everything that keeps a task from being ready, provoked with real workers: `ready()` and
// `allstop doctor` both name the task that blocks, and why.

import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { ClusterCoordinator, ClusterSpec, type ReadinessReport } from 'allstop/cluster';
import { NatsStrategy, type NatsStrategyOptions } from 'allstop/nats';
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { AddressChecks, ClusterTasks } from '../../../lib/nats/coordinator/tasks.ts';
import { type Diagnosis, diagnose, problemsOf } from '../../support/nats-doctor.ts';
import { NatsServer } from '../../support/nats-server.ts';
import { NatsWorker, type WorkerOptions } from '../../support/nats-worker.ts';
import { untilReport, whyNotReady } from '../../support/not-ready.ts';
import { Program } from '../../support/program.ts';
import { publishedCopy } from '../../support/published-copy.ts';

const tasks = new URL('../../fixtures/cluster-nats-tasks.mjs', import.meta.url);
const broken = new URL('../../fixtures/broken-tasks.mjs', import.meta.url);
const root = fileURLToPath(new URL('../../..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string;
};

let server: NatsServer;
let count = 0;
/** The cluster name of the running test. */
let cluster: string;
const ending: (() => unknown)[] = [];

beforeAll(async () => {
  server = await NatsServer.start();
});
afterAll(() => server.close());
afterEach(async () => {
  for (const end of ending.splice(0).toReversed()) await end();
});

function start(
  worker?: string[],
  module = tasks,
  options: Partial<NatsStrategyOptions> = {},
): ClusterCoordinator {
  cluster = `readiness-${(count += 1)}`;
  const expected = worker === undefined ? {} : { expect: new ClusterSpec({ worker }) };
  const strategy = new NatsStrategy({
    module,
    servers: server.address,
    cluster,
    ...expected,
    ...options,
  });
  const coordinator = new ClusterCoordinator(strategy);
  ending.push(() => coordinator.close());
  return coordinator;
}

function work(options: Partial<WorkerOptions> = {}): NatsWorker {
  const worker = new NatsWorker({ module: tasks, servers: server.address, cluster, ...options });
  ending.push(() => worker.kill());
  return worker;
}

const hasPhase =
  (phase: string, index = 0) =>
  ({ tasks: all }: ReadinessReport): boolean =>
    all.some((task) => task.task === index && task.phase === phase);

/** How the doctor describes the machine of a worker on this host. */
const machine = (slots: number): string =>
  `cores ${availableParallelism()}, \\d+\\.\\d GB free, slots ${slots}, node ${process.versions.node}, allstop ${version}`;

/** The cause that the doctor gives for that task. `others`: the number of further problems. */
async function diagnosed(target: string, others = 0): Promise<{ found: Diagnosis; cause: string }> {
  const found = await diagnose(server.address, cluster);
  expect(found.status).toBe(1);
  const problems = problemsOf(found);
  expect(problems).toHaveLength(1 + others);
  const problem = problems.find((each) => each.target === target);
  expect(problem).toMatchObject({ remedy: expect.any(String) });
  return { found, cause: problem?.cause as string };
}

it('nobody is there: doctor says so, and leaves nothing behind', async () => {
  cluster = 'nobody';
  const { found, cause } = await diagnosed('nobody');
  expect(problemsOf(found)).toMatchObject([{ name: 'coordinator' }]);
  expect(cause).toBe("no coordinator has ever held the cluster 'nobody'");
  expect(found).not.toHaveProperty('report');
  const nats = await connect({ servers: server.address });
  ending.push(() => nats.close());
  const streams = await (await jetstreamManager(nats)).streams.list().next();
  expect(streams.map(({ config }) => config.name)).not.toContain('KV_allstop_nobody');
});

it('a coordinator that its program closed is no problem: who it was, and since when', async () => {
  const coordinator = start();
  const worker = work();
  await coordinator.ready();
  const over = worker.next('session-over');
  await coordinator.close();
  expect(await over).toMatchObject({
    why: 'the program has closed its coordinator; waiting for the next',
  });
  const found = await diagnose(server.address, cluster);
  expect(found).toMatchObject({ status: 0, ok: true });
  expect(found.checks.find(({ name }) => name === 'coordinator')).toMatchObject({
    ok: true,
    detail: expect.stringMatching(
      new RegExp(
        `^\\S+ \\(pid ${process.pid}\\), started \\d+ s ago: its program closed it \\d+ s ago; no other has begun since$`,
      ),
    ),
  });
  // The worker waits for a coordinator.
  expect(found.checks.find(({ name }) => name === 'node')).toMatchObject({
    ok: true,
    detail: expect.stringMatching(new RegExp(`^any worker, has no task yet; ${machine(1)}$`)),
    target: expect.stringContaining(`(pid ${worker.pid})`),
  });
});

it('a coordinator that was killed is a problem', { tags: 'long' }, async () => {
  cluster = `readiness-${(count += 1)}`;
  const args = [tasks.href, server.address, cluster];
  const program = new Program('test/fixtures/nats-coordinator.mjs', args);
  const worker = work();
  await program.writes(/ready/);
  program.child.kill('SIGKILL');
  await program.ended;
  await worker.kill();
  const { found, cause } = await diagnosed(cluster);
  const coordinatorCheck = found.checks.find(({ name }) => name === 'coordinator');
  expect(coordinatorCheck?.detail).toMatch(/; no worker of this cluster is connected$/);
  expect(found.checks.map(({ name }) => name)).not.toContain('node');
  expect(cause).toMatch(
    new RegExp(
      `^the coordinator, on \\S+ \\(pid ${program.child.pid}\\), started \\d+ s ago, does not answer: its process has ended without close\\(\\), `,
    ),
  );
});

it('all is well', async () => {
  const coordinator = start();
  const worker = work();
  await coordinator.ready();
  const found = await diagnose(server.address, cluster);
  expect(found).toMatchObject({
    status: 0,
    ok: true,
    report: { ready: true, engine: { phase: 'ready' } },
  });
  expect(found.checks.find(({ name }) => name === 'task')).toMatchObject({
    target: 'worker:0',
    detail: expect.stringMatching(
      // The figures come with the first answer to a probe, the delay of its loop with a later one.
      new RegExp(
        `\\(pid ${worker.pid}\\), ready for \\d+ s; ${machine(1)}` +
          '(; round trip [\\d.]+ ms(, event loop [\\d.]+ ms late)?, load [\\d.]+, [\\d.]+ GB free)?$',
      ),
    ),
  });
});

/** The command that starts a worker of the test's cluster. */
const command = (): string =>
  `npx allstop worker --module ${fileURLToPath(tasks)} --servers ${server.address} --cluster ${cluster}`;

it('a worker that was started for another cluster: which cluster, where, and the command', async () => {
  const coordinator = start();
  const worker = work({ cluster: `${cluster}-of-another-name` });
  await worker.next('connected');
  const error = await whyNotReady(coordinator, hasPhase('unregistered'));
  expect(error.message).toContain(
    `: no worker has registered for this task of the cluster '${cluster}' at ${server.address}. What to do: ${command()}`,
  );
});

it('a parameter server that is missing: the command names the job', async () => {
  const expected = new ClusterSpec({ worker: ['localhost'], ps: ['localhost'] });
  const coordinator = start(undefined, tasks, { expect: expected });
  const error = await whyNotReady(coordinator, ({ tasks: all }) =>
    all.some(({ job, cause }) => job === 'ps' && /answers/.test(cause ?? '')),
  );
  expect(error.message).toContain(`${command()} --job ps`);
});

it('hosts without a worker: those that answer, and those that cannot be found', async () => {
  const coordinator = start(['localhost:2222', 'no-such-host.invalid:2222', '127.0.0.1']);
  const hasCause = ({ cause }: { cause?: string }): boolean => /answers|unknown/.test(cause ?? '');
  const error = await whyNotReady(coordinator, ({ tasks: all }) => all.every(hasCause));
  const alive = (host: string): string =>
    `the host ${host} answers, but no worker has registered for this task of the cluster '${cluster}' at ${server.address}. What to do: if a worker already runs on that host, read its output, which names its cluster; otherwise start one there: ${command()}`;
  expect(error.message).toMatch(
    /Blocking: worker:0 unregistered, worker:1 unregistered, worker:2 unregistered\n/,
  );
  expect(error.message).toContain(`worker:0 (localhost:2222), unregistered for`);
  expect(error.message).toContain(alive('localhost'));
  expect(error.message).toContain(alive('127.0.0.1'));
  expect(error.message).toContain(
    'the name no-such-host.invalid is unknown (DNS: ENOTFOUND). What to do: correct it',
  );
  const { cause } = await diagnosed('worker:1', 2);
  expect(cause).toMatch(/^unregistered for \d+ s: the name no-such-host\.invalid is unknown/);
});

it('hosts without a worker are looked at again soon after a reconnection', async () => {
  const spec = new ClusterSpec({ worker: ['localhost'] });
  const workerStart = { cluster: 'c', servers: 's', command: 'w' };
  const all = new ClusterTasks({ expect: spec as never, minWorkers: 1, workerStart });
  const [task] = all.all;
  const looks: true[] = [];
  const checks = new AddressChecks(all, () => looks.push(true));
  ending.push(() => checks.close());
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  // (expect.poll would let fake time pass.)
  const haveLooked = async (times: number): Promise<void> => {
    for (let turns = 0; looks.length < times && turns < 100_000; turns++) await turn();
    expect(looks).toHaveLength(times);
  };
  checks.start();
  vi.advanceTimersByTime(250);
  await haveLooked(1);
  task?.enter('unregistered');
  checks.stop();
  checks.start();
  vi.advanceTimersByTime(250);
  await haveLooked(2);
});

it('a check that the end of the run breaks off says nothing of its host', async () => {
  const spec = new ClusterSpec({ worker: ['localhost'] });
  const workerStart = { cluster: 'c', servers: 's', command: 'w' };
  const all = new ClusterTasks({ expect: spec as never, minWorkers: 1, workerStart });
  const causes: (string | undefined)[] = [];
  const tell = (): void => void causes.push(all.all[0]?.readiness.cause);
  const [ended, other] = [new AddressChecks(all, tell), new AddressChecks(all, tell)];
  ending.push(() => other.close());
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  ended.start();
  other.start();
  vi.advanceTimersByTime(250); // both look up the name
  ended.close();
  for (let turns = 0; causes.length < 1 && turns < 100_000; turns++) await turn();
  await turn();
  expect(causes).toEqual([expect.stringContaining('the host localhost answers')]);
});

it('a worker that is gone', { tags: 'long' }, async () => {
  const coordinator = start(['localhost']);
  const worker = work();
  await coordinator.ready();
  await worker.kill();
  const error = await whyNotReady(coordinator, hasPhase('lost'));
  expect(error.message).toMatch(
    new RegExp(
      `worker:0 \\(\\S+, pid ${worker.pid}\\), lost for .* is gone\\. What to do: start the worker again`,
    ),
  );
  const { cause } = await diagnosed('worker:0');
  expect(cause).toMatch(/^lost for \d+ s: Worker worker:0 .* is gone$/);
});

it('a worker that hangs, until it goes on', async () => {
  const coordinator = start(['localhost']);
  const worker = work();
  await coordinator.ready();
  worker.child.kill('SIGSTOP');
  const error = await whyNotReady(coordinator, hasPhase('silent'));
  expect(error.message).toMatch(
    new RegExp(
      `worker:0 silent\\n.*\\(pid ${worker.pid}\\) has not answered for \\d000 ms: it hangs, is stopped`,
    ),
  );
  const { cause } = await diagnosed('worker:0');
  expect(cause).toMatch(/hangs, is stopped \(SIGSTOP\), or/);
  worker.child.kill('SIGCONT');
  await coordinator.ready();
});

it('a worker that hangs for longer than the coordinator waits', { tags: 'long' }, async () => {
  const coordinator = start(['localhost']);
  const worker = work();
  await coordinator.ready();
  worker.child.kill('SIGSTOP');
  const error = await whyNotReady(coordinator, hasPhase('lost'));
  expect(error.message).toMatch(/it hangs, is stopped, or its network is cut|is gone/);
  await diagnosed('worker:0');
  worker.child.kill('SIGCONT');
  await coordinator.ready();
});

it('a worker of another version', { tags: 'long' }, async () => {
  const other = publishedCopy({ compiled: true });
  ending.push(() => rmSync(other.folder, { recursive: true }));
  symlinkSync(join(root, 'node_modules/@nats-io'), join(other.folder, 'node_modules/@nats-io'));
  const dist = join(other.packaged, 'dist');
  const wire = readdirSync(dist).filter((name) => {
    if (!name.endsWith('.js')) return false;
    const text = readFileSync(join(dist, name), 'utf8');
    if (!text.includes('protocol: 7,')) return false;
    writeFileSync(join(dist, name), text.replace('protocol: 7,', 'protocol: 8,'));
    return true;
  });
  expect(wire).toHaveLength(1);
  const coordinator = start(['localhost']);
  const worker = work({ cli: other.cli });
  const error = await whyNotReady(coordinator, hasPhase('version-mismatch'));
  expect(error.message).toMatch(
    /version-mismatch for .*: the worker speaks protocol 8 \(allstop [\d.]+\), the coordinator protocol 7\. What to do: install the same version/,
  );
  const { cause, found } = await diagnosed('worker:0');
  expect(cause).toMatch(/version-mismatch for \d+ s: the worker speaks protocol 8/);
  // The task shows the worker, so the worker has no line of its own.
  expect(found.checks.filter(({ name }) => name === 'node')).toEqual([]);
  expect(problemsOf(found)[0]?.detail).toMatch(
    new RegExp(`\\(pid ${worker.pid}\\), version-mismatch for \\d+ s; ${machine(1)}$`),
  );
});

it('a worker with another module, until it has the right one', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'allstop-module-'));
  ending.push(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'tasks.mjs');
  cpSync(fileURLToPath(tasks), path);
  writeFileSync(path, '\n// One line more.\n', { flag: 'a' });
  const coordinator = start(['localhost']);
  const worker = work({ module: pathToFileURL(path) });
  const error = await whyNotReady(coordinator, hasPhase('definition-mismatch'));
  expect(error.message).toMatch(/definition-mismatch for .*[\da-f]{12} there, [\da-f]{12} here/);
  const { cause } = await diagnosed('worker:0');
  expect(cause).toMatch(/^definition-mismatch for/);
  await worker.kill();
  work();
  await coordinator.ready();
});

it('a worker that was given another ClusterSpec, until it has the right one', {
  tags: 'long',
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'allstop-spec-'));
  ending.push(() => rmSync(folder, { recursive: true }));
  const spec = join(folder, 'spec.json');
  writeFileSync(spec, JSON.stringify({ worker: { 0: 'localhost', 1: 'elsewhere' } }));
  const coordinator = start(['localhost']);
  const worker = work({ spec });
  const error = await whyNotReady(coordinator, hasPhase('spec-mismatch'));
  expect(error.message).toMatch(/spec-mismatch for .*[\da-f]{12} there, [\da-f]{12} here/);
  const { cause } = await diagnosed('worker:0');
  expect(cause).toMatch(/^spec-mismatch for/);
  await worker.kill();
  writeFileSync(spec, JSON.stringify({ worker: { 0: 'localhost' } })); // equal, if not the same
  work({ spec });
  await coordinator.ready();
});

it('of the workers that are expected, as many as are enough', { tags: 'long' }, async () => {
  const coordinator = start(['localhost', 'localhost', 'localhost'], tasks, { minWorkers: 2 });
  work({ task: 2 });
  await untilReport(coordinator, hasPhase('ready', 2));
  expect(coordinator.workers).toHaveLength(1);
  const ready = coordinator.ready();
  const worker = work({ task: 3 });
  expect(await worker.next('refused')).toMatchObject({ phase: 'not-expected' });
  work();
  await ready;
  const untaken = await diagnose(server.address, cluster);
  expect(problemsOf(untaken)).toMatchObject([{ target: 'worker:1' }, { name: 'node' }]);
});

it('where only parameter servers are expected, any worker may come', { tags: 'long' }, async () => {
  const coordinator = start(undefined, tasks, { expect: new ClusterSpec({ ps: ['localhost'] }) });
  work({ task: 7 });
  await whyNotReady(coordinator, ({ tasks: all }) =>
    all.some(({ job, ready }) => job === 'worker' && ready),
  );
  work({ job: 'ps' });
  await coordinator.ready();
  expect(await (await coordinator.schedule('pid')).fetch()).toBeGreaterThan(0);
});

it('a worker that was turned away and is gone is not the reason any more', {
  tags: 'long',
}, async () => {
  const coordinator = start(['localhost'], broken);
  const worker = work();
  await untilReport(coordinator, hasPhase('definition-mismatch'));
  await worker.kill();
  const error = await whyNotReady(coordinator, hasPhase('unregistered'));
  expect(error.message).toMatch(
    /the worker that was turned away \(definition-mismatch\) is gone|answers, but/,
  );
});

it('a machine without memory', { tags: 'long' }, async () => {
  const coordinator = start(['localhost']);
  const preload =
    'import os from "node:os"; import { syncBuiltinESMExports } from "node:module";' +
    'os.freemem = () => 40 * 1024 ** 2; syncBuiltinESMExports();';
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(preload)}`;
  work({ slots: 2, env: { NODE_OPTIONS } });
  const error = await whyNotReady(coordinator, hasPhase('insufficient-resources'));
  expect(error.message).toMatch(/has 40 MB of free memory, and 2 threads need 64 MB/);
  const { cause } = await diagnosed('worker:0');
  expect(cause).toMatch(/^insufficient-resources for .* 40 MB/);
});

it('a worker on a runtime that writes values in another way', async () => {
  const coordinator = start(['localhost']);
  const versions = "{ value: { ...process.versions, bun: '1.4.5' } }";
  const preload = `Object.defineProperty(process, 'versions', ${versions});`;
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(preload)}`;
  work({ env: { NODE_OPTIONS } });
  const error = await whyNotReady(coordinator, hasPhase('version-mismatch'));
  expect(error.message).toMatch(/runs on bun 1\.4\.5, the coordinator on node .* both on Bun/);
});

it('a module that cannot be imported', async () => {
  const coordinator = start(['localhost'], broken);
  const worker = work({ module: broken });
  const error = await whyNotReady(coordinator, hasPhase('import-failed'));
  expect(error.message).toContain('this module is broken');
  expect(worker.events.map(({ event }) => event)).toContain('session');
  expect(worker.events.map(({ event }) => event)).not.toContain('serving');
  const { found } = await diagnosed('worker:0', 1);
  expect(problemsOf(found)).toMatchObject([
    { name: 'coordinator', cause: expect.stringContaining('this module is broken') },
    { name: 'task', cause: expect.stringMatching(/^import-failed for .*this module is broken/) },
  ]);
});

it('a worker that cannot import the module, while another may', { tags: 'long' }, async () => {
  const fails =
    'if (process.env.FAILS) throw new Error("no driver here"); export const one = () => 1;';
  const folder = await mkdtemp(join(tmpdir(), 'allstop-readiness-'));
  ending.push(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'tasks.mjs');
  writeFileSync(file, fails);
  const module = pathToFileURL(file);
  const coordinator = start(['localhost', 'localhost'], module);
  const first = work({ module, task: 0, env: { FAILS: '1' } });
  const error = await whyNotReady(coordinator, hasPhase('import-failed'));
  expect(error.message).toContain('no driver here');
  expect(error.message).toContain('worker:1 (localhost), unregistered');
  expect(first.events.map(({ event }) => event)).not.toContain('refused');
  work({ module, task: 1 });
  expect(await (await coordinator.schedule('one')).fetch()).toBe(1);
  work({ module, task: 0 });
  await coordinator.ready();
});

it('a worker that nobody expects, and one for a place that is taken', {
  tags: 'long',
}, async () => {
  const coordinator = start(['localhost']);
  const first = work({ task: 0 });
  await coordinator.ready();
  const [second, stranger] = [work({ task: 0 }), work({ task: 7 })];
  const refusals = await Promise.all([second.next('refused'), stranger.next('refused')]);
  expect(refusals.map(({ phase }) => phase)).toEqual(['task-taken', 'not-expected']);
  const found = await diagnose(server.address, cluster);
  expect(found).toMatchObject({ status: 1, report: { ready: true } });
  const causeOf = ({ pid }: NatsWorker): string | undefined =>
    problemsOf(found).find(({ target }) => target?.includes(`(pid ${pid})`))?.cause;
  expect(causeOf(second)).toMatch(
    new RegExp(`task-taken: worker:0 is taken by \\S+ \\(pid ${first.pid}\\)`),
  );
  expect(causeOf(stranger)).toMatch(/not-expected: worker:7 is not in the ClusterSpec/);
});

it('a machine with thousands of addresses takes the task of any of its interfaces', async () => {
  const coordinator = start(['10.99.99.98', '10.99.99.99'], tasks, { minWorkers: 1 });
  const many = new URL('../../fixtures/many-addresses.mjs', import.meta.url);
  work({ env: { NODE_OPTIONS: `--import ${many.href}` } });
  await untilReport(coordinator, hasPhase('ready', 1));
});

it('a worker whose first message is too long for the server says so', async () => {
  const small = await NatsServer.start('max_payload: 256');
  ending.push(() => small.close());
  cluster = 'small';
  expect(await work({ servers: small.address }).next('too-long')).toMatchObject({
    cause: expect.stringMatching(/max_payload of 256 bytes/),
    remedy: expect.stringMatching(/raise `max_payload`/),
  });
});

it('a variable without a parameter server is why the workers do not start', async () => {
  const coordinator = start();
  const variable = coordinator.variable('w', 0);
  variable.catch(() => {}); // awaited below
  const worker = work();
  const error = await whyNotReady(coordinator, hasPhase('starting'));
  expect(error.message).toMatch(
    /its threads start when cluster.variable\(\) has a parameter server.*What to do: start a parameter server: .*--job ps/,
  );
  const { cause } = await diagnosed('worker:0');
  expect(cause).toMatch(/cluster.variable/);
  await expect(coordinator.run('square', [1], { timeoutMs: 50 })).rejects.toThrow(
    /cluster.variable/,
  );
  const serving = worker.next('serving');
  work({ job: 'ps' });
  await serving;
  await variable;
});
