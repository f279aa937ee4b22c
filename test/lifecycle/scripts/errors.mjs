// An error that crosses threads keeps its class, name, code, fields, cause and stack.
import assert from 'node:assert/strict';
import { isMainThread, workerData } from 'node:worker_threads';
import { CancelledError, Coordinator } from 'allstop';
import { say } from './say.mjs';
import { addon } from './test-addon.mjs';

class QuotaError extends RangeError {}

function quotaError() {
  const error = new QuotaError('over quota', { cause: new TypeError('the cause', { cause: 7 }) });
  error.name = 'QuotaError';
  const fields = { code: 'E_QUOTA', used: 12n, by: new Map([['a', new Set([1])]]) };
  return Object.assign(error, fields, { self: error });
}

const ways = {
  requests: (coord) => coord.requestStop(quotaError()),
  throws() {
    throw quotaError();
  },
  'requests with ours': (coord) => coord.requestStop(new CancelledError('ours')),
  aggregates: (coord) => coord.requestStop(new AggregateError([quotaError(), 'text'], 'two')),
};

function checkQuota(error) {
  assert(error instanceof RangeError);
  assert.equal(error.name, 'QuotaError');
  assert.equal(error.message, 'over quota');
  assert.equal(error.code, 'E_QUOTA');
  assert.equal(error.used, 12n);
  assert.deepEqual(error.by, new Map([['a', new Set([1])]]));
  assert.equal(error.self, error);
  assert(error.cause instanceof TypeError);
  assert.equal(error.cause.cause, 7);
  assert.match(error.stack, /errors\.mjs/);
}

const checks = {
  requests: checkQuota,
  throws: checkQuota,
  'requests with ours'(error) {
    assert(error instanceof CancelledError);
    assert.equal(error.code, 'ERR_ALLSTOP_CANCELLED');
  },
  aggregates(error) {
    assert(error instanceof AggregateError);
    checkQuota(error.errors[0]);
    assert.equal(error.errors[1], 'text');
  },
};

async function joinError(coord) {
  const error = await coord.join().then(
    () => undefined,
    (thrown) => thrown,
  );
  assert.notEqual(error, undefined);
  return error;
}

if (isMainThread) {
  const wrong = [];
  const tell = async (way, story) => {
    try {
      await story();
    } catch (error) {
      wrong.push(`${way}: ${error.message.split('\n').slice(0, 2).join(' ')}`);
    }
  };
  for (const [way, check] of Object.entries(checks)) {
    await tell(way, async () => {
      const coord = new Coordinator();
      coord.spawn(new URL(import.meta.url), { workerData: way });
      check(await joinError(coord));
    });
  }
  await tell('native', async () => {
    const coord = new Coordinator();
    addon.start(coord, 'throw', 'thrower', 'from C++');
    addon.openGate('thrower');
    const { name, message, nativeType } = await joinError(coord);
    assert.equal(name, 'NativeError');
    assert.equal(message, 'from C++');
    assert.match(nativeType, /CustomError/);
  });
  say('told', { wrong });
  process.exitCode = wrong.length > 0 ? 1 : 0;
} else {
  ways[workerData](Coordinator.current());
}
