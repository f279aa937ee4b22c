/** Frames are lost, doubled and reordered; messages still arrive once each, whole and in order. */
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  checkLength,
  LONGEST_VALUE_BYTES,
  ReliableChannel,
} from '../../../../lib/cluster/nats/wire/reliable-channel.ts';
import { turn } from '../../../support/gate.ts';

const seed = Number(process.env['ALLSTOP_TEST_SEED'] ?? Date.now() % 2 ** 31);

const FRAME_BYTES = 24; // 14 for the header, 10 for a part of a message
const WINDOW_BYTES = 70; // three frames

/** One end of a channel, and the frames on their way to the other end (`wire`). */
class End {
  readonly channel: ReliableChannel;
  readonly sent: string[] = [];
  readonly taken: string[] = [];
  impostors = 0;
  wire: Uint8Array[] = [];
  frames = 0;

  constructor(isUp: () => boolean, windowBytes = WINDOW_BYTES) {
    this.channel = new ReliableChannel(
      { maxFrameBytes: FRAME_BYTES, windowBytes },
      {
        send: (frame) => {
          expect(frame.byteLength).toBeLessThanOrEqual(FRAME_BYTES);
          if (!isUp()) return false;
          this.wire.push(Uint8Array.from(frame)); // a resent frame is the same Buffer, changed
          this.frames += 1;
          return true;
        },
        onMessage: (message) => this.taken.push(message.toString('latin1')),
        onImpostor: () => {
          this.impostors += 1;
        },
      },
    );
  }

  post(bytes: number): void {
    const message = `${this.sent.length}:`.padEnd(bytes, 'x').slice(0, bytes);
    this.sent.push(message);
    this.channel.post(Buffer.from(message, 'latin1'));
  }
}

class Pair {
  isUp = true;
  readonly ends: readonly [End, End];

  constructor(windowBytes?: number) {
    const isUp = (): boolean => this.isUp;
    this.ends = [new End(isUp, windowBytes), new End(isUp, windowBytes)];
  }

  /** Delivers one frame, perhaps out of order. A copy stays on the wire, to arrive again. */
  deliver(from: 0 | 1, at: number, isCopy: boolean): void {
    const { wire } = this.ends[from];
    if (wire.length === 0) return;
    const index = at % wire.length;
    const [frame] = isCopy ? [wire[index]] : wire.splice(index, 1);
    expect(this.ends[from === 0 ? 1 : 0].channel.receive(frame as Uint8Array)).toBe(true);
  }

  lose(from: 0 | 1, at: number): void {
    const { wire } = this.ends[from];
    if (wire.length > 0) wire.splice(at % wire.length, 1);
  }

  cut(): void {
    this.isUp = false;
    for (const end of this.ends) end.wire = [];
  }

  resume(): void {
    this.isUp = true;
    for (const { channel } of this.ends) channel.resume();
  }

  /** Delivers all frames in order, until the wire is empty both ways. */
  flow(): void {
    while (this.ends.some(({ wire }) => wire.length > 0)) {
      this.deliver(0, 0, false);
      this.deliver(1, 0, false);
    }
  }

  get isDrained(): boolean {
    return this.ends.every(({ channel }) => channel.isDrained);
  }
}

type Step =
  | { do: 'post'; from: 0 | 1; bytes: number }
  | { do: 'deliver'; from: 0 | 1; at: number }
  | { do: 'repeat' | 'lose'; from: 0 | 1; at: number }
  | { do: 'cut' | 'resume' | 'flow' }
  | { do: 'wait'; ms: number };

const from = fc.constantFrom(0 as const, 1 as const);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('post' as const), from, bytes: fc.nat(45) }),
  },
  {
    weight: 10,
    arbitrary: fc.record({ do: fc.constant('deliver' as const), from, at: fc.nat(3) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('repeat' as const, 'lose' as const),
      from,
      at: fc.nat(9),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('cut' as const, 'resume' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('flow' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 20, 1_000) }),
  },
);

function take(pair: Pair, action: Step): void {
  switch (action.do) {
    case 'post':
      pair.ends[action.from].post(action.bytes);
      break;
    case 'deliver':
    case 'repeat':
      pair.deliver(action.from, action.at, action.do === 'repeat');
      break;
    case 'lose':
      pair.lose(action.from, action.at);
      break;
    case 'wait':
      vi.advanceTimersByTime(action.ms);
      break;
    default:
      pair[action.do]();
  }
}

function expectInOrder({ ends: [one, other] }: Pair): void {
  expect(one.taken).toEqual(other.sent.slice(0, one.taken.length));
  expect(other.taken).toEqual(one.sent.slice(0, other.taken.length));
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe(`with the seed ${seed}`, () => {
  function run(numRuns: number): void {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 200, size: 'max' }),
        fc.boolean(),
        (steps, isTold) => {
          vi.clearAllTimers(); // of a run that has failed, when fast-check shrinks
          const pair = new Pair();
          for (const action of steps) {
            take(pair, action);
            expectInOrder(pair);
          }
          if (isTold) pair.resume();
          else pair.isUp = true; // the resend timers notice
          for (let seconds = 0; seconds < 1_000 && !pair.isDrained; seconds += 1) {
            pair.flow();
            vi.advanceTimersByTime(1_000);
          }
          expect(pair.isDrained).toBe(true);
          for (const [at, end] of pair.ends.entries()) {
            expect(end.taken).toEqual(pair.ends[1 - at]?.sent);
          }
          pair.flow();
          vi.advanceTimersByTime(20); // the last acknowledgement
          pair.flow();
          vi.advanceTimersByTime(60_000);
          expect(pair.ends.map(({ wire }) => wire)).toEqual([[], []]); // no frame is sent any more
          for (const { channel } of pair.ends) channel.close();
          expect(vi.getTimerCount()).toBe(0);
        },
      ),
      { seed, numRuns },
    );
  }

  const name = 'frames that are lost, doubled, and out of order, %i times';
  it.each([100])(name, { tags: 'property' }, run);
  it.each([500])(name, { tags: ['property', 'long'] }, run);
});

describe('a frame that is lost', () => {
  it('is asked for as soon as a later one arrives, without a timer', () => {
    const pair = new Pair();
    const [one, other] = pair.ends;
    for (let n = 0; n < 3; n += 1) one.post(5);
    pair.lose(0, 0);
    pair.flow();
    expect(other.taken).toEqual(one.sent);
  });

  it('is asked for once, however many arrive after it', () => {
    const pair = new Pair(100 * FRAME_BYTES);
    const [one, other] = pair.ends;
    for (let n = 0; n < 50; n += 1) one.post(5);
    pair.lose(0, 0);
    while (one.wire.length > 0) pair.deliver(0, 0, false);
    expect(other.wire).toHaveLength(1);
    pair.flow();
    expect(other.taken).toEqual(one.sent);
    expect(one.frames).toBe(100);
  });

  it('is sent again after a second if it was the last, and ever more rarely', () => {
    const pair = new Pair();
    const [one, other] = pair.ends;
    one.post(5);
    const seconds: number[] = [];
    for (let second = 0; second <= 40; second += 1) {
      if (one.wire.length > 0) seconds.push(second);
      one.wire = [];
      vi.advanceTimersByTime(1_000);
    }
    expect(seconds).toEqual([0, 1, 3, 7, 15, 23, 31, 39]);
    vi.advanceTimersByTime(8_000);
    pair.flow();
    expect(other.taken).toEqual(one.sent);
  });
});

it('an acknowledgement that is lost is said again when its frame comes again', () => {
  const pair = new Pair();
  const [one, other] = pair.ends;
  one.post(5);
  pair.flow();
  vi.advanceTimersByTime(20);
  pair.lose(1, 0);
  vi.advanceTimersByTime(1_000);
  pair.flow();
  vi.advanceTimersByTime(20);
  pair.flow();
  expect(pair.isDrained).toBe(true);
  expect(other.taken).toEqual(one.sent);
});

it('no more than the window is on its way, and the rest follows what is acknowledged', () => {
  const pair = new Pair();
  const [one, other] = pair.ends;
  for (let n = 0; n < 100; n += 1) one.post(10);
  expect(one.wire).toHaveLength(3);
  for (let n = 0; n < 200 && !pair.isDrained; n += 1) {
    expect(one.wire.length).toBeLessThanOrEqual(3);
    pair.flow();
    vi.advanceTimersByTime(20);
  }
  expect(other.taken).toEqual(one.sent);
});

it('what is acknowledged is not kept', async () => {
  vi.useRealTimers();
  const frames: WeakRef<Uint8Array>[] = [];
  let ack: Uint8Array | undefined;
  const receiver = new ReliableChannel(
    { maxFrameBytes: FRAME_BYTES },
    {
      send: (frame) => {
        ack = Uint8Array.from(frame);
        return true;
      },
      onMessage: () => {},
      onImpostor: () => {},
    },
  );
  const sender = new ReliableChannel(
    { maxFrameBytes: FRAME_BYTES },
    {
      send: (frame) => {
        frames.push(new WeakRef(frame));
        return receiver.receive(Uint8Array.from(frame));
      },
      onMessage: () => {},
      onImpostor: () => {},
    },
  );
  for (let n = 0; n < 64; n += 1) sender.post(Buffer.alloc(8)); // 64 frames are acknowledged at once
  const drained = sender.drained();
  sender.receive(ack as Uint8Array);
  await drained;
  await turn();
  globalThis.gc?.();
  expect(frames).toHaveLength(64);
  expect(frames.filter((frame) => frame.deref() !== undefined)).toEqual([]);
  for (const channel of [sender, receiver]) channel.close();
});

describe('the end', () => {
  it('in the middle of a message leaves no timer and says nothing more', () => {
    const pair = new Pair();
    const [one] = pair.ends;
    let frames = 0;
    const channel: ReliableChannel = new ReliableChannel(
      { maxFrameBytes: FRAME_BYTES },
      {
        send: () => {
          frames += 1;
          return true;
        },
        onMessage: () => channel.close(),
        onImpostor: () => {},
      },
    );
    one.post(5);
    channel.receive(one.wire[0] as Uint8Array);
    expect(frames).toBe(1); // the acknowledgement
    channel.post(Buffer.from('too late'));
    channel.resume();
    one.channel.close();
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(10_000);
    expect(frames).toBe(1);
  });

  it('nobody waits for what will never be acknowledged', async () => {
    const pair = new Pair();
    const [one] = pair.ends;
    one.post(5);
    const drained = [one.channel.drained(), one.channel.drained()];
    one.channel.close();
    await Promise.all(drained);
    expect(vi.getTimerCount()).toBe(0);
  });
});

it.each([
  ['nothing', []],
  ['too short', Array(13).fill(1)],
  ['of no kind', [9, 0, ...Array(12).fill(0)]],
])('what is no frame is said to be none: %s', (_, bytes: number[]) => {
  const [one] = new Pair().ends;
  expect(one.channel.receive(Uint8Array.from(bytes))).toBe(false);
  expect(vi.getTimerCount()).toBe(0);
});

it('what was never sent, and is acknowledged, was somebody else’s', () => {
  const [one] = new Pair().ends;
  one.post(5);
  expect(one.channel.receive(Uint8Array.from([2, 0, ...Array(11).fill(0), 2]))).toBe(true);
  expect(one.impostors).toBe(1);
  one.channel.close();
});

it('a value that is longer than a message may be is refused', () => {
  const longest = new Uint8Array(LONGEST_VALUE_BYTES);
  expect(checkLength(longest)).toBe(longest);
  const tooLong = new Uint8Array(LONGEST_VALUE_BYTES + 1);
  expect(() => checkLength(tooLong)).toThrow(
    expect.objectContaining({
      name: 'RangeError',
      code: 'ERR_OUT_OF_RANGE',
      message: 'A value of 1072693249 bytes is too long: over NATS the limit is 1072693248 bytes',
    }),
  );
});
