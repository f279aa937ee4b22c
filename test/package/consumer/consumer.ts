import {
  BoundedQueue,
  Coordinator,
  LooperThread,
  type NativeError,
  type QueueHandle,
  QueueRunner,
  type QueueRunnerThread,
  type StopRecord,
} from 'allstop';
import {
  ClusterCoordinator,
  type ClusterOptions,
  LocalStrategy,
  type RemoteValue,
} from 'allstop/cluster';
import {
  fakeStraggler,
  Gate,
  type GateHandle,
  type KilledWorker,
  killWorker,
  LinkProxy,
  tripAfter,
} from 'allstop/testing';

const coord: Coordinator = new Coordinator({
  name: 'typed',
  cleanStopErrors: [RangeError, 'E_END'],
});
const value: number | undefined = await Coordinator.run((same) => (same.shouldStop() ? 0 : 1));
const stopped: boolean = await coord.waitForStop(value, { signal: coord.signal });
const swallowed: number | undefined = coord.stopOnException(() => 1);
const later: Promise<string | undefined> = coord.stopOnException(async () => 'x');
const record: StopRecord | undefined = coord.stopRecord;
const nativeType: string | undefined = (record?.error as NativeError | undefined)?.nativeType;
// @ts-expect-error: a string is not a list
new Coordinator({ cleanStopErrors: 5 });
// @ts-expect-error: the time must be a number
void coord.waitForStop('soon');
await coord.join([Promise.resolve(1), { name: 'x', join: async () => {} }], {
  stopGracePeriodMs: 1,
});

const queue = new BoundedQueue<number>({ capacity: 1, coordinator: coord });
const handle: QueueHandle<number> = queue.handle;
const attached: BoundedQueue<number> = BoundedQueue.attach(handle);
const item: number | undefined = attached.tryDequeue();
const items: Promise<number[]> = queue.dequeueMany(2, {
  min: 2,
  timeoutMs: 1,
  signal: coord.signal,
});
// @ts-expect-error: the argument must be a number
void queue.enqueue('one');
// @ts-expect-error: the capacity is missing
new BoundedQueue({});
const runner = new QueueRunner(queue, [async (same, c) => same.enqueue(c ? 1 : 0), new URL('x:')], {
  queueClosedErrors: [RangeError, 'E_END'],
});
const threads: QueueRunnerThread[] = runner.createThreads({ coordinator: coord });
class Beat extends LooperThread {
  override runLoop(): void {}
}
await coord.join([...threads, new Beat(coord, null), LooperThread.loop(coord, 5, () => {})]);
await coord[Symbol.asyncDispose]();

type Tasks = {
  add(a: number, b: number): Promise<number>;
  next(from: AsyncIterator<string>): string;
};
declare const tasks: Tasks;
const options: ClusterOptions = { retries: 1, cancelGraceMs: 5 };
const cluster = new ClusterCoordinator<Tasks>(
  new LocalStrategy({ module: new URL('x:') }),
  options,
);
const sum: RemoteValue<number> = await cluster.schedule('add', [1, 2], { timeoutMs: 1 });
const lines = cluster.createPerWorkerDataset(function* () {
  yield 'line';
});
const line: RemoteValue<string> = await cluster.schedule(tasks.next, [lines.iterator()]);
const fetched: { all: [number, string] } = await cluster.fetch({ all: [sum, line] as const });
// @ts-expect-error: an argument is missing
void cluster.schedule('add', [1]);
// @ts-expect-error: there is no such function
void cluster.schedule('subtract', [1, 2]);

const trip: Disposable = tripAfter(coord, 3, new RangeError('x'));
const straggler: Disposable = fakeStraggler(coord);
const gate: GateHandle = new Gate({ coordinator: coord }).handle;
Gate.attach(gate).passSync({ timeoutMs: 1 });
await Gate.attach(gate).arrived(2, { timeoutMs: 1, signal: coord.signal });
await using proxy = await LinkProxy.open({ to: 'nats://localhost', latencyMs: 5 });
proxy.setRate(1_000);
// @ts-expect-error: the number of the poll is missing
tripAfter(coord);
const killed: KilledWorker = await killWorker(cluster, { function: 'add' });
// @ts-expect-error: which worker?
await killWorker(cluster, {});

export { fetched, item, items, killed, later, nativeType, stopped, straggler, swallowed, trip };
