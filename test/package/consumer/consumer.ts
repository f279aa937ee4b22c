import { Coordinator, type NativeError, type StopRecord } from 'allstop';

const coord: Coordinator = new Coordinator({
  name: 'typed',
  cleanStopErrors: [RangeError, 'E_END'],
});
const value: number = await Coordinator.run((same) => (same.shouldStop() ? 0 : 1));
const stopped: boolean = await coord.waitForStop(value, { signal: coord.signal });
const swallowed: number | undefined = coord.stopOnException(() => 1);
const later: Promise<string | undefined> = coord.stopOnException(async () => 'x');
const record: StopRecord | undefined = coord.stopRecord;
const nativeType: string | undefined = (record?.error as NativeError | undefined)?.nativeType;
// @ts-expect-error: a bare string is no list
new Coordinator({ cleanStopErrors: 5 });
// @ts-expect-error: milliseconds are a number
void coord.waitForStop('soon');
await coord.join([Promise.resolve(1), { name: 'x', join: async () => {} }], {
  stopGracePeriodMs: 1,
});
await coord[Symbol.asyncDispose]();

export { later, nativeType, stopped, swallowed };
