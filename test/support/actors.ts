/**
 * Actors: the same operations on one coordinator, done by this JavaScript thread, by a worker or by
 * a native thread, so that one test can run with any pair of them.
 */
import { Worker } from 'node:worker_threads';
import { Coordinator, OutOfRangeError } from 'allstop';
import { addon } from './test-addon.ts';

export type ErrorName = 'RangeError' | 'OutOfRangeError';

export type Actor = {
  /** Resolves to the name of the error that the call threw; undefined if it threw none. */
  requestStop(error?: ErrorName): Promise<string | undefined>;
  shouldStop(): Promise<boolean>;
  waitForStop(timeoutMs: number): Promise<boolean>;
  clearStop(): Promise<void>;
  /** Resolves to the name of the error that the join rejected with; undefined if it resolved. */
  join(stopGracePeriodMs: number): Promise<string | undefined>;
  dispose(): Promise<void>;
};

export type ActorKind = 'this thread' | 'a worker' | 'a native thread';

/** The pairs that the tests run with: the actor that acts, the actor that observes. */
export const pairs: [ActorKind, ActorKind][] = [
  ['this thread', 'this thread'],
  ['this thread', 'a worker'],
  ['a worker', 'this thread'],
  ['a worker', 'a worker'],
  ['a native thread', 'this thread'],
  ['this thread', 'a native thread'],
  ['a native thread', 'a worker'],
  ['a worker', 'a native thread'],
];

export function makeError(name: ErrorName): Error {
  return name === 'RangeError' ? new RangeError('from JS') : new OutOfRangeError('from JS');
}

async function nameThrown(run: () => unknown): Promise<string | undefined> {
  try {
    await run();
    return undefined;
  } catch (error) {
    return (error as Error).name;
  }
}

function here(coord: Coordinator): Actor {
  return {
    requestStop: (error) => nameThrown(() => coord.requestStop(error && makeError(error))),
    shouldStop: async () => coord.shouldStop(),
    waitForStop: (timeoutMs) => coord.waitForStop(timeoutMs),
    clearStop: async () => coord.clearStop(),
    join: (stopGracePeriodMs) => nameThrown(() => coord.join({ stopGracePeriodMs })),
    dispose: async () => {},
  };
}

function inWorker(coord: Coordinator): Actor {
  const url = new URL('../fixtures/actor-worker.mjs', import.meta.url);
  const worker = new Worker(url, { workerData: coord.handle });
  const pending = new Map<number, (value: unknown) => void>();
  let next = 0;
  worker.on('message', ({ id, value }: { id: number; value: unknown }) => {
    pending.get(id)?.(value);
    pending.delete(id);
  });
  const call = (operation: string, argument?: unknown): Promise<never> => {
    const id = next++;
    const answer = new Promise<unknown>((resolve) => pending.set(id, resolve));
    worker.postMessage({ id, operation, argument });
    return answer as Promise<never>;
  };
  return {
    requestStop: (error) => call('requestStop', error),
    shouldStop: () => call('shouldStop'),
    waitForStop: (timeoutMs) => call('waitForStop', timeoutMs),
    clearStop: () => call('clearStop'),
    join: (stopGracePeriodMs) => call('join', stopGracePeriodMs),
    dispose: async () => {
      await worker.terminate();
    },
  };
}

/** The JavaScript names of the statuses of allstop.h. */
const STATUS_NAMES: Record<string, string | undefined> = {
  '0': undefined,
  '9': 'refused',
  '101': 'SelfJoinError',
  '102': 'StragglersError',
  '103': 'the recorded error',
};

function nativeThread(coord: Coordinator): Actor {
  return {
    requestStop: async (error) =>
      STATUS_NAMES[
        error === undefined
          ? addon.call(coord, 'requestStop')
          : addon.call(coord, 'requestStopError', error)
      ],
    shouldStop: async () => addon.call(coord, 'shouldStop') === 'true',
    waitForStop: async (timeoutMs) => addon.call(coord, 'waitForStop', `${timeoutMs}`) === 'true',
    clearStop: async () => void addon.call(coord, 'clearStop'),
    join: async (graceMs) => STATUS_NAMES[addon.call(coord, 'join', `${graceMs}`)],
    dispose: async () => {},
  };
}

export function actor(kind: ActorKind, coord: Coordinator): Actor {
  if (kind === 'this thread') return here(coord);
  return kind === 'a worker' ? inWorker(coord) : nativeThread(coord);
}
