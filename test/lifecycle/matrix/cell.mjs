// One cell of the matrix: a worker in a state, its death, and the rules that hold in every cell.
//
// 1. The worker ends.
// 2. The join gets the error that the death is, and no other; after a stop such an error is
//    suppressed, and a worker that is terminated, or dies of an echo of the stop, is no error.
// 3. The death of a worker that the coordinator does not watch stops nothing.
// 4. No thread is listed that is not there; the worker has ended once.
// 5. Another thread can use the coordinator: sees the same record, clears it, stops it again.
// 6. The queues hold what was put into them: what the dead waited for is not taken, and what they
//    wanted to put into a full queue is not there.
import { isDeepStrictEqual } from 'node:util';
import { Worker } from 'node:worker_threads';
import { BoundedQueue, Coordinator, OutOfRangeError } from 'allstop';
import { workerDeaths } from './deaths.mjs';
import { states } from './states.mjs';
import { COMMAND, COMMANDS, HERE, isAsleep, newWords, raise } from './words.mjs';

const url = new URL('worker.mjs', import.meta.url);
/** Only so that a cell that hangs is named: a busy machine may take 20 s for what takes 0.1 s. */
const HANGS_MS = 60_000;
const FULL = ['a', 'b'];

/** Whether a worker in that state can die so. */
function isPossible(state, death) {
  if (death.inside && state.blocks) return false;
  return !(death.afterStop && state.stopped);
}

/** The cells in which a worker dies, and its process lives on. */
export function allCells() {
  return Object.entries(states).flatMap(([state, flags]) =>
    Object.entries(workerDeaths)
      .filter(([, death]) => isPossible(flags, death))
      .map(([how, death]) => ({ name: `a worker ${state} ${how}`, state, death })),
  );
}

const turn = () => new Promise(setImmediate);

async function until(isSo, what) {
  const end = performance.now() + HANGS_MS;
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`Never: ${what}`);
    await turn();
  }
}

async function inTime(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Hangs: ${what}`)), HANGS_MS);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const settled = (promise) =>
  promise.then(
    () => ({ threw: false }),
    (error) => ({ threw: true, error }),
  );

/** Brings a worker into the state. */
export async function enter(name) {
  const state = states[name];
  const coord = new Coordinator({ name, stopGracePeriodMs: 2 * HANGS_MS });
  const empty = new BoundedQueue({ capacity: 4, name: 'empty', coordinator: coord });
  const full = new BoundedQueue({ capacity: FULL.length, name: 'full', coordinator: coord });
  for (const item of FULL) full.enqueueSync(item);
  const words = newWords();
  const queues = { empty: empty.handle, full: full.handle };
  const options = {
    name: 'mortal',
    resourceLimits: { maxOldGenerationSizeMb: 24 },
    workerData: { state: name, words, queues, handle: coord.handle },
  };
  void coord.start(() => coord.waitForStop(), { name: 'bystander' });
  const worker = state.unregistered ? new Worker(url, options) : coord.spawn(url, options);
  worker.on('error', () => {}); // the coordinator's watch has it; here an error is expected
  const exited = new Promise((resolve) => worker.once('exit', resolve));
  const joined = settled(coord.join());
  const tell = (command) => {
    if (state.point) raise(words, COMMAND, COMMANDS.indexOf(command));
    else if (!state.blocks && command !== 'return') worker.postMessage(command);
  };
  const arrived = Atomics.waitAsync(words, HERE, 0).value;
  // A promise of Atomics.waitAsync keeps no event loop alive: the worker does.
  await inTime(Promise.race([arrived, exited]), 'the way into the state');
  if (Atomics.load(words, HERE) === 0) throw new Error('The worker never came into the state');
  await until(() => isAsleep(words), 'the worker sleeps');
  return { state, coord, empty, full, worker, exited, joined, tell };
}

const has = (error, fields) =>
  Object.entries(fields).every(([key, value]) => isDeepStrictEqual(error?.[key], value));

const show = (error) =>
  error === undefined ? 'nothing' : `${error?.name} ${error?.code}: ${error?.message}`;

/** Rules 2 and 3. @returns what was wrong */
function checkRecord({ state, coord }, death, result) {
  const wrong = [];
  const isError = death.error !== undefined && !state.unregistered;
  const { kind, error, suppressed = [], suppressedCount = 0 } = coord.stopRecord ?? {};
  const others = suppressed.map((each) => each.error);
  if (isError && !state.stopped) {
    if (!result.threw) wrong.push('join() threw nothing');
    else if (!has(result.error, death.error)) wrong.push(`join() threw ${show(result.error)}`);
    if (kind !== 'error' || error !== result.error) wrong.push(`the record is ${kind}`);
  } else {
    if (result.threw) wrong.push(`join() threw ${show(result.error)}`);
    if (kind !== 'plain') wrong.push(`the record is ${kind}`);
    if (isError && !death.shutsDown) {
      const at = others.findIndex((other) => has(other, death.error));
      if (at < 0) wrong.push('its error is not suppressed');
      else others.splice(at, 1);
    }
  }
  for (const other of others) wrong.push(`suppressed: ${show(other)}`);
  if (suppressedCount !== suppressed.length) wrong.push(`suppressedCount ${suppressedCount}`);
  return wrong;
}

function listed(coord) {
  const { threads, leftBehind = [] } = coord.explain();
  return [...threads, ...leftBehind].map(({ name }) => name);
}

/** Rule 4. */
function checkThreads({ state, coord }) {
  const wrong = [];
  const { recentlyEnded, queues = [] } = coord.explain();
  const names = listed(coord);
  if (names.length > 0) wrong.push(`listed, though all have ended: ${names.join()}`);
  const ends = recentlyEnded.filter(({ name }) => name === 'mortal').length;
  if (ends !== (state.unregistered ? 0 : 1)) wrong.push(`the worker has ended ${ends} times`);
  for (const { name, waiting } of queues) {
    if (waiting.length > 0) wrong.push(`waits for the queue ${name}: ${waiting}`);
  }
  return wrong;
}

/** Takes all items out of a queue, which a queue runner may have closed. */
function drain(queue) {
  const items = [];
  try {
    for (let item = queue.tryDequeue(); item !== undefined; item = queue.tryDequeue()) {
      items.push(item);
    }
  } catch (error) {
    if (!(error instanceof OutOfRangeError && queue.closed)) throw error;
  }
  return items;
}

/** Rule 6, while the coordinator is not stopped. */
function checkQueues({ empty, full }) {
  const wrong = [];
  const check = (what, items, wanted) => {
    if (!isDeepStrictEqual(items, wanted)) wrong.push(`${what} has [${items}], not [${wanted}]`);
  };
  check('the full queue', drain(full), FULL);
  check('the empty queue', drain(empty), []);
  const fed = ['1', '2', '3'];
  for (const item of fed) empty.enqueueSync(item);
  check('the empty queue, fed', drain(empty), fed);
  return wrong;
}

/** @param bystander asks another thread: `bystander(operation, handle)` resolves to its answer */
export async function runCell(name, death, bystander) {
  const cell = await enter(name);
  const { state, coord, empty, full, exited, joined } = cell;
  death.act(cell);
  await inTime(exited, 'the worker after its death');
  const wrong = [];
  if (state.unregistered && !death.afterStop) {
    if (coord.shouldStop()) wrong.push('an unregistered worker stopped the coordinator');
    coord.requestStop();
  }
  const result = await inTime(joined, 'join()');
  wrong.push(...checkRecord(cell, death, result));
  // The entries of threads that have outlived the join end with them.
  await until(() => listed(coord).length === 0, 'no ghost').catch(() => {});
  wrong.push(...checkThreads(cell));
  const { id } = coord.stopRecord;
  const seen = await inTime(bystander('clear', coord.handle), 'another thread');
  if (seen !== id) wrong.push(`another thread sees the record ${seen}, not ${id}`);
  if (coord.shouldStop()) wrong.push('another thread could not clear the stop');
  wrong.push(...checkQueues(cell));
  const again = settled(coord.join([coord.waitForStop()]));
  await inTime(bystander('stop', coord.handle), 'another thread');
  const second = await inTime(again, 'the second join()');
  if (second.threw) wrong.push(`the second join() threw ${show(second.error)}`);
  // What has a handle lives on until it is disposed of, or closed and empty (rule 6 has emptied it).
  for (const queue of [empty, full]) queue.close();
  await inTime(coord[Symbol.asyncDispose](), 'the end of the coordinator');
  return wrong;
}
