// The scenarios that scripts/test-matrix.mjs runs under each runtime: the scripts of
// test/lifecycle/scripts with the expected results. A story (the function of a scenario) throws if
// the result is wrong; otherwise it may return a text that replaces "ok" in the table.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Checks how the process ended, and returns the line of its output with this event. A failure shows
 * what the process wrote to stderr.
 */
function told(ended, event, { code = 0, signal = null } = {}) {
  const how = ended.signal ?? `exit code ${ended.code}`;
  const wrote = `. Its stderr: ${ended.stderr.slice(-4_000) || '(nothing)'}`;
  assert.ok(how === (signal ?? `exit code ${code}`), `the script ended with ${how}${wrote}`);
  if (event === undefined) return {};
  const found = ended.said.find((said) => said.event === event);
  assert.ok(found, `the script never printed '${event}'${wrote}`);
  return found;
}

/** The longest time of an end that counts as prompt. A wait that no stop interrupts takes 40 s. */
const PROMPT_MS = 20_000;

async function terminate(start) {
  const { ms } = told(await start('blocked-workers', ['terminate', '2']).ended, 'terminated');
  assert.ok(ms < PROMPT_MS, `terminate() took ${ms} ms`);
  return `${ms} ms`;
}

async function exit(start) {
  const ended = await start('blocked-workers', ['exit', '2']).ended;
  const ms = ended.at - told(ended, 'exiting', { code: 7 }).at;
  assert.ok(ms < PROMPT_MS, `process.exit() took ${ms} ms`);
  return `${ms} ms`;
}

async function nativeOutlivesWorker(start) {
  for (const args of [
    ['ends', 'naturally'],
    ['terminated', 'naturally'],
  ]) {
    const ended = await start('native-outlives-worker', args).ended;
    const { results } = told(ended, 'results', { code: 5 });
    assert.deepEqual(results, { requester: '0', poller: 'stopped', waiter: 'stopped' });
  }
}

async function workerOnlyAddonAtExit(start) {
  for (const how of ['ends', 'terminated']) {
    told(await start('native-outlives-worker', [how, 'exit']).ended, 'results', { code: 5 });
  }
}

async function nativeThreadsAtExit(start) {
  for (const mode of ['exit', 'exit', 'exit', 'naturally']) {
    told(await start('native-threads-at-exit', [mode]).ended, undefined, { code: 9 });
  }
}

async function stopFlags(start) {
  for (const how of ['ends', 'terminated']) {
    const { calls, main } = told(await start('stop-flags', [how]).ended, 'result');
    assert.deepEqual({ calls, main }, { calls: 1, main: '0|1' });
  }
  told(await start('stop-flags', ['exit']).ended, 'exiting', { code: 5 });
}

async function posts(start) {
  for (const how of ['ends', 'terminated']) {
    told(await start('posts', [how]).ended, 'result');
  }
  told(await start('posts', ['exit']).ended, 'called', { code: 5 });
}

async function hotLoop(start) {
  const { ms, looks } = told(await start('hot-loop').ended, 'seen');
  assert.ok(Math.min(...looks) > 1_000, 'the loop was not hot');
  return `${ms} ms`;
}

async function errors(start) {
  const ended = await start('errors').ended;
  const found = ended.said.find(({ event }) => event === 'told');
  assert.ok(found, 'it ended before it had told');
  assert.ok(found.wrong.length === 0, `wrong: ${found.wrong.join(', ')}`);
  told(ended, 'told');
}

async function collected(start) {
  const { heapMb } = told(await start('collected-coordinators', ['1000']).ended, 'collected');
  assert.ok(heapMb < 1.5, `the heap grew by ${heapMb} MB`);
  return `${heapMb} MB`;
}

async function cleared(start) {
  told(await start('cleared-at-once', ['same-thread', '1000']).ended, 'seen');
}

async function eventLoop(start) {
  for (const story of ['pending wait', 'aborted waits', 'abandoned signal']) {
    told(await start('event-loop', [story]).ended, 'ended');
  }
}

async function firstSignal(start) {
  for (const way of ['idle', 'blocked', 'busy']) {
    const script = start('signals', ['first', way]);
    await script.says('ready');
    script.kill('SIGINT');
    const { signal } = told(await script.ended, 'stopped', { code: 3 });
    assert.equal(signal, 'SIGINT');
  }
}

/** What comes this soon after the first signal belongs to the same press of a key, and does nothing. */
const PRESS_MS = 500;

async function secondSignal(start) {
  for (const way of ['idle', 'busy']) {
    const script = start('signals', ['second', way]);
    await script.says('ready');
    script.kill('SIGINT');
    await script.says('stopped');
    await sleep(PRESS_MS + 50);
    script.kill('SIGTERM');
    told(await script.ended, 'stopped', { code: null, signal: 'SIGTERM' });
  }
}

async function queues(start) {
  for (const how of ['dequeueSync', 'enqueueSync', 'dequeue', 'enqueue']) {
    const { item } = told(await start('queues', ['terminate', how, '3']).ended, 'ended');
    assert.equal(item, 'later');
    told(await start('queues', ['exit', how, '3']).ended, undefined, { code: 7 });
  }
  for (const how of ['ends', 'terminated']) {
    const { wrong } = told(await start('queues', ['environment gone', how]).ended, 'ended');
    assert.equal(wrong, 0);
  }
}

async function pipeline(start) {
  const { sum, consumer, threads, suppressed } = told(await start('pipeline').ended, 'ended');
  assert.equal(sum, 499_500);
  assert.match(consumer, /^[01]$/);
  assert.deepEqual({ threads, suppressed }, { threads: [], suppressed: [] });
}

async function sqlite(start) {
  const ended = await start('sqlite').ended;
  if (ended.said.some(({ event }) => event === 'unavailable')) return 'no node:sqlite';
  assert.deepEqual(told(ended, 'blocked').said, ['asks', 'interrupted']);
  const { deadline, again } = told(ended, 'deadline');
  assert.deepEqual({ deadline, again }, { deadline: 'interrupted', again: 'interrupted' });
  return undefined;
}

const cluster = (isolation) => async (start) => {
  const { wrong } = told(await start('cluster', [isolation]).ended, 'told');
  assert.ok(wrong.length === 0, `wrong: ${wrong.join(', ')}`);
};

async function forks(start) {
  const { wrong, median, worst } = told(await start('forks', ['10']).ended, 'told');
  assert.ok(wrong.length === 0, `wrong: ${wrong.join(', ')}`);
  return `stop after ${median} ms, at most ${worst} ms`;
}

/** `isLive`: the story reads the output while the script runs; `isPosix`: the story needs POSIX
 * signals; `forks`: the script starts its own runtime as a child, which qemu does not emulate. */
const scenario = (title, story, more = {}) => ({ title, story, ...more });
const quick = { quick: true };
const signal = { isLive: true, isPosix: true };

export const scenarios = [
  scenario('terminate()', terminate, quick),
  scenario('process.exit()', exit, quick),
  scenario('worker-only load; native outlives worker', nativeOutlivesWorker, quick),
  scenario('worker-only load, at exit', workerOnlyAddonAtExit),
  scenario('native threads at exit', nativeThreadsAtExit),
  scenario('posts from threads', posts),
  scenario('stop flags', stopFlags),
  scenario('hot loop', hotLoop, quick),
  scenario('errors across threads', errors, quick),
  scenario('queues', queues, quick),
  scenario('queue runner, looper', pipeline, quick),
  scenario('cluster of threads', cluster('thread'), quick),
  scenario('cluster of processes', cluster('process'), { ...quick, forks: true }),
  scenario('fork', forks, { ...quick, forks: true }),
  scenario('node:sqlite', sqlite, quick),
  scenario('GC, 1,000 rounds', collected),
  scenario('cleared at once', cleared),
  scenario('event loop', eventLoop),
  scenario('first signal', firstSignal, signal),
  scenario('second signal', secondSignal, signal),
];
