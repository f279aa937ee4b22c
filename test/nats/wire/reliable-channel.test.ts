/**
 * Frames are lost, doubled and reordered; messages still arrive once each, whole and in order.
 * Through a slow pipe no frame is sent that the other end has.
 */
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  checkLength,
  LONGEST_VALUE_BYTES,
  ReliableChannel,
  sharedWindowBytes,
} from '../../../lib/nats/wire/reliable-channel.ts';
import { turn } from '../../support/gate.ts';
import { runs, seed } from '../../support/seed.ts';

const FRAME_BYTES = 28; // 18 for the header, and 10 for a part of a message
const WINDOW_BYTES = 84; // three frames

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
      { maxFrameBytes: FRAME_BYTES, windowBytes: () => windowBytes },
      {
        send: (frame) => {
          expect(frame.byteLength).toBeLessThanOrEqual(FRAME_BYTES);
          if (!isUp()) return false;
          this.wire.push(Uint8Array.from(frame)); // a resent frame is the same Buffer, changed
          this.frames += 1;
          return true;
        },
        onMessage: (message, attached) => {
          const all = [...attached, message].map((bytes) => bytes.toString('latin1'));
          this.taken.push(all.join('|'));
        },
        onImpostor: () => {
          this.impostors += 1;
        },
      },
    );
  }

  /** `attached`: the lengths of attachments. */
  post(bytes: number, attached: readonly number[] = []): void {
    const message = `${this.sent.length}:`.padEnd(bytes, 'x').slice(0, bytes);
    const more = attached.map((length) => 'abcdefghij'.repeat(3).slice(0, length));
    this.sent.push([...more, message].join('|'));
    this.channel.post(
      Buffer.from(message, 'latin1'),
      more.map((text) => Buffer.from(text, 'latin1')),
    );
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
  | { do: 'post'; from: 0 | 1; bytes: number; attached?: number[] }
  | { do: 'deliver'; from: 0 | 1; at: number }
  | { do: 'repeat' | 'lose'; from: 0 | 1; at: number }
  | { do: 'cut' | 'resume' | 'flow' }
  | { do: 'wait'; ms: number };

const from = fc.constantFrom(0 as const, 1 as const);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('post' as const),
      from,
      bytes: fc.nat(45),
      attached: fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 2 }),
    }),
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
      pair.ends[action.from].post(action.bytes, action.attached);
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
          else pair.isUp = true; // the timers notice
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
  it.each([runs(100)])(name, { tags: 'property' }, run);
  it.each([500])(name, { tags: ['property', 'long'] }, run);
});

/** A direction of a slow link: frames wait in a queue, then travel; none overtakes another. */
class Pipe {
  readonly #bytesPerSecond: number;
  readonly #latencyMs: number;
  #freeAt = 0;
  readonly #inFlight = new Set<{ timer: NodeJS.Timeout; leavesAt: number }>();

  constructor(bytesPerSecond: number, latencyMs: number) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#latencyMs = latencyMs;
  }

  /** Bytes go through the pipe, of which `onArrival` tells. */
  carry(bytes: number, onArrival: () => void): void {
    const now = performance.now();
    this.#freeAt = Math.max(this.#freeAt, now) + (bytes / this.#bytesPerSecond) * 1_000;
    const frame = {
      leavesAt: this.#freeAt,
      timer: setTimeout(
        () => {
          this.#inFlight.delete(frame);
          onArrival();
        },
        Math.ceil(this.#freeAt + this.#latencyMs - now),
      ),
    };
    this.#inFlight.add(frame);
  }

  /** Loses what has not left yet, or everything. */
  lose(isAll: boolean): void {
    const now = performance.now();
    for (const frame of this.#inFlight) {
      if (!isAll && frame.leavesAt <= now) continue;
      clearTimeout(frame.timer);
      this.#inFlight.delete(frame);
    }
    this.#freeAt = now;
  }
}

/** One end at a slow link. It keeps account of its frames. */
class SlowEnd {
  readonly channel: ReliableChannel;
  readonly sent: string[] = [];
  readonly taken: string[] = [];
  isUp = true;
  /** The lengths of the data frames, by number. */
  readonly #lengths: number[] = [0];
  #acked = 0;
  #takenSeq = 0;
  /** How many data frames were sent again. */
  again = 0;
  /** How many data frames came that this end had taken already. */
  needless = 0;

  constructor(windowBytes: number, pipe: Pipe, other: () => SlowEnd) {
    this.channel = new ReliableChannel(
      { maxFrameBytes: FRAME_BYTES, windowBytes: () => windowBytes },
      {
        send: (frame) => {
          if (!this.isUp) return false;
          if (frame[0] === 1) this.#onSend(Buffer.from(frame), windowBytes);
          const copy = Uint8Array.from(frame); // a resent frame is the same Buffer, changed
          pipe.carry(copy.byteLength, () => other().#receive(copy));
          return true;
        },
        onMessage: (message, attached) => {
          const all = [...attached, message].map((bytes) => bytes.toString('latin1'));
          this.taken.push(all.join('|'));
        },
        onImpostor: () => expect.unreachable(),
      },
    );
  }

  /** `attached`: the lengths of attachments. */
  post(bytes: number, attached: readonly number[] = []): void {
    const message = `${this.sent.length}:`.padEnd(bytes, 'x').slice(0, bytes);
    const more = attached.map((length) => 'abcdefghij'.repeat(3).slice(0, length));
    this.sent.push([...more, message].join('|'));
    this.channel.post(
      Buffer.from(message, 'latin1'),
      more.map((text) => Buffer.from(text, 'latin1')),
    );
  }

  #onSend(frame: Buffer, windowBytes: number): void {
    const seq = frame.readUIntBE(2, 6);
    if (this.#lengths[seq] !== undefined) this.again += 1;
    this.#lengths[seq] = frame.length;
    const unacked = this.#lengths.slice(this.#acked + 1).reduce((sum, length) => sum + length, 0);
    expect(unacked).toBeLessThanOrEqual(Math.max(windowBytes, FRAME_BYTES));
  }

  #receive(bytes: Uint8Array): void {
    if (!this.isUp) return;
    const frame = Buffer.from(bytes);
    const seq = frame.readUIntBE(2, 6);
    if (frame[0] === 1 && seq <= this.#takenSeq) this.needless += 1;
    if (frame[0] === 1 && seq === this.#takenSeq + 1) this.#takenSeq = seq;
    this.#acked = Math.max(this.#acked, frame.readUIntBE(8, 6));
    expect(this.channel.receive(bytes)).toBe(true);
  }
}

type Link = { bytesPerSecond: [number, number]; latencyMs: number; windowBytes: [number, number] };

class SlowLink {
  readonly ends: readonly [SlowEnd, SlowEnd];
  readonly #pipes: readonly [Pipe, Pipe];

  constructor({ bytesPerSecond, latencyMs, windowBytes }: Link) {
    const [up, down] = bytesPerSecond;
    this.#pipes = [new Pipe(up, latencyMs), new Pipe(down, latencyMs)];
    this.ends = [
      new SlowEnd(windowBytes[0], this.#pipes[0], () => this.ends[1]),
      new SlowEnd(windowBytes[1], this.#pipes[1], () => this.ends[0]),
    ];
  }

  /** What others send through the same pipe. */
  crowd(side: 0 | 1, bytes: number): void {
    this.#pipes[side].carry(bytes, () => {});
  }

  /** Breaks the connection of one end, which comes back after a while. */
  break(side: 0 | 1, downMs: number, isOtherTold: boolean): void {
    const end = this.ends[side];
    end.isUp = false;
    this.#pipes[side].lose(false);
    this.#pipes[1 - side]?.lose(true);
    vi.advanceTimersByTime(downMs);
    end.isUp = true;
    end.channel.resume();
    if (isOtherTold) this.ends[1 - side]?.channel.resume();
  }

  finish(): void {
    const isDrained = (): boolean => this.ends.every(({ channel }) => channel.isDrained);
    for (let seconds = 0; seconds < 100_000 && !isDrained(); seconds += 1) {
      vi.advanceTimersByTime(1_000);
    }
    expect(isDrained()).toBe(true);
    const [one, other] = this.ends;
    expect(one.taken).toEqual(other.sent);
    expect(other.taken).toEqual(one.sent);
    for (const { channel } of this.ends) channel.close();
    vi.advanceTimersByTime(1_000_000); // what is still on its way arrives
    expect(vi.getTimerCount()).toBe(0);
  }
}

type SlowStep =
  | { do: 'post'; from: 0 | 1; bytes: number; attached?: number[] }
  | { do: 'crowd'; from: 0 | 1; bytes: number }
  | { do: 'wait'; ms: number }
  | { do: 'break'; from: 0 | 1; ms: number; isOtherTold: boolean };

const rate = fc.constantFrom(10, 30, 300, 10_000);
const windowOf = fc.constantFrom(20, WINDOW_BYTES, 10 * WINDOW_BYTES);
const slowLink: fc.Arbitrary<Link> = fc.record({
  bytesPerSecond: fc.tuple(rate, rate),
  latencyMs: fc.constantFrom(0, 1, 100, 3_000),
  windowBytes: fc.tuple(windowOf, windowOf),
});
const calmStep: fc.Arbitrary<SlowStep> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('post' as const), from, bytes: fc.nat(300) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('crowd' as const), from, bytes: fc.nat(500) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(5_000) }),
  },
);
const breakStep: fc.Arbitrary<SlowStep> = fc.record({
  do: fc.constant('break' as const),
  from,
  ms: fc.nat(3_000),
  isOtherTold: fc.boolean(),
});

function takeSlow(link: SlowLink, action: SlowStep): void {
  if (action.do === 'post') link.ends[action.from].post(action.bytes);
  else if (action.do === 'crowd') link.crowd(action.from, action.bytes);
  else if (action.do === 'wait') vi.advanceTimersByTime(action.ms);
  else link.break(action.from, action.ms, action.isOtherTold);
}

describe(`through a slow pipe, with the seed ${seed}`, () => {
  function run(steps: fc.Arbitrary<SlowStep>, numRuns: number, check: (link: SlowLink) => void) {
    fc.assert(
      fc.property(
        slowLink,
        fc.array(steps, { maxLength: 40, size: 'max' }),
        (settings, actions) => {
          vi.clearAllTimers(); // of a run that has failed, when fast-check shrinks
          const link = new SlowLink(settings);
          for (const action of actions) takeSlow(link, action);
          link.finish();
          check(link);
        },
      ),
      { seed, numRuns },
    );
  }

  it('nothing is sent twice while the connection lives', { tags: 'property' }, () => {
    run(calmStep, runs(100), ({ ends }) => expect(ends.map(({ again }) => again)).toEqual([0, 0]));
  });

  it('nothing is sent again that has arrived, though connections break', {
    tags: 'property',
  }, () => {
    run(
      fc.oneof({ weight: 6, arbitrary: calmStep }, { weight: 1, arbitrary: breakStep }),
      runs(100),
      (link) => expect(link.ends.map(({ needless }) => needless)).toEqual([0, 0]),
    );
  });
});

describe('a frame that is lost', () => {
  it('is sent again as soon as a later one arrives, without a timer', () => {
    const pair = new Pair();
    const [one, other] = pair.ends;
    for (let n = 0; n < 3; n += 1) one.post(5);
    pair.lose(0, 0);
    pair.flow();
    expect(other.taken).toEqual(one.sent);
  });

  it('is reported once, however many arrive after it', () => {
    const pair = new Pair(100 * FRAME_BYTES);
    const [one, other] = pair.ends;
    for (let n = 0; n < 50; n += 1) one.post(5);
    pair.lose(0, 0);
    while (one.wire.length > 0) pair.deliver(0, 0, false);
    expect(other.wire).toHaveLength(1);
    pair.flow();
    expect(other.taken).toEqual(one.sent);
    expect(one.frames).toBe(101); // each frame twice, and one question
  });

  it('is asked about after a second if it was the last, and ever more rarely', () => {
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

it('an acknowledgement that is lost is said again when it is asked for', () => {
  const pair = new Pair();
  const [one, other] = pair.ends;
  one.post(5);
  while (one.wire.length > 0) pair.deliver(0, 0, false);
  vi.advanceTimersByTime(20);
  pair.lose(1, 0);
  vi.advanceTimersByTime(1_000);
  pair.flow();
  expect(pair.isDrained).toBe(true);
  expect(other.taken).toEqual(one.sent);
  expect(one.frames).toBe(2); // the frame, and the question
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

it('no more is on its way than the other end grants', () => {
  const pair = new Pair(100 * FRAME_BYTES);
  const [one] = pair.ends;
  one.post(10);
  const [first] = one.wire.splice(0);
  const receiver = new End(() => true, WINDOW_BYTES);
  receiver.channel.receive(first as Uint8Array);
  vi.advanceTimersByTime(20);
  one.channel.receive(receiver.wire[0] as Uint8Array);
  for (let n = 0; n < 100; n += 1) one.post(10);
  expect(one.wire).toHaveLength(3);
  for (const { channel } of [one, receiver]) channel.close();
});

it('sessions of a coordinator share what may be on its way', () => {
  expect([0, 1, 32, 64, 1_024].map(sharedWindowBytes)).toEqual(
    [1_024, 1_024, 1_024, 512, 32].map((kilobytes) => kilobytes * 1_024),
  );
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
  ['too short', Array(17).fill(1)],
  ['of no kind', [9, 0, ...Array(16).fill(0)]],
])('what is no frame is said to be none: %s', (_, bytes: number[]) => {
  const [one] = new Pair().ends;
  expect(one.channel.receive(Uint8Array.from(bytes))).toBe(false);
  expect(vi.getTimerCount()).toBe(0);
});

it('what was never sent, and is acknowledged, was somebody else’s', () => {
  const [one] = new Pair().ends;
  one.post(5);
  expect(one.channel.receive(Uint8Array.from([2, 0, ...Array(11).fill(0), 2, 0, 0, 0, 0]))).toBe(
    true,
  );
  expect(one.impostors).toBe(1);
  one.channel.close();
});

describe('an attachment', () => {
  /** A frame of data: 0 is the last part of a message, 1 another part, 2 the length. */
  const frame = (seq: number, part: 0 | 1 | 2, payload: number[] | string): Buffer => {
    const head = Buffer.alloc(18);
    head[0] = 1;
    head[1] = part;
    head.writeUIntBE(seq, 2, 6);
    head.writeUInt32BE(WINDOW_BYTES, 14);
    return Buffer.concat([head, Buffer.from(payload as string)]);
  };

  it('comes before its message, in an ArrayBuffer of its own', () => {
    let got: readonly Buffer[] = [];
    const channel = new ReliableChannel(
      { maxFrameBytes: FRAME_BYTES },
      {
        send: () => true,
        onMessage: (message, attached) => {
          got = [message, ...attached];
        },
        onImpostor: () => expect.unreachable(),
      },
    );
    const frames = [
      frame(1, 2, [0, 0, 0, 5]),
      frame(2, 1, 'abc'),
      frame(3, 1, 'de'),
      frame(4, 0, 'the message'),
    ];
    for (const each of frames) channel.receive(each);
    expect(got.map(String)).toEqual(['the message', 'abcde']);
    expect(got[1]?.buffer.byteLength).toBe(5);
    channel.close();
  });

  it.each([
    ['is longer than its length', [frame(1, 2, [0, 0, 0, 2]), frame(2, 1, 'abc')]],
    ['ends too soon', [frame(1, 2, [0, 0, 0, 5]), frame(2, 0, 'abc')]],
    ['begins in another', [frame(1, 2, [0, 0, 0, 5]), frame(2, 2, [0, 0, 0, 5])]],
    ['begins in a message', [frame(1, 1, 'abc'), frame(2, 2, [0, 0, 0, 5])]],
    ['is empty', [frame(1, 2, [0, 0, 0, 0])]],
    ['is longer than a message may be', [frame(1, 2, [0x40, 0, 0, 1])]],
    ['has no length', [frame(1, 2, [5])]],
  ])('that %s is a forgery', (_, frames) => {
    const end = new End(() => true);
    for (const each of frames) end.channel.receive(each);
    expect(end.impostors).toBe(1);
    expect(end.taken).toEqual([]);
    end.channel.close();
  });
});

it('a value that is longer than a message may be is refused', () => {
  const longest = new Uint8Array(LONGEST_VALUE_BYTES);
  expect(checkLength(longest)).toBe(longest);
  const tooLong = new Uint8Array(LONGEST_VALUE_BYTES + 1);
  expect(() => checkLength(tooLong)).toThrow(
    expect.objectContaining({
      name: 'RangeError',
      code: 'ERR_OUT_OF_RANGE',
    }),
  );
});
