/**
 * One end of a channel that neither loses, doubles nor reorders messages, over core NATS, which
 * may do all three while a connection breaks. While a connection lives it does none of them, so
 * nothing is sent twice then, however long a slow link takes.
 *
 * 1. Frames are numbered from 1. A sent frame stays in `#unacked` until the other end has
 *    acknowledged it.
 * 2. A frame is taken only if its number is the next; any other frame is dropped. So messages
 *    arrive whole and in order.
 * 3. A frame is sent again only when the other end lacks it: an end asks, the other end answers
 *    which frame it took last, and the frames after that one are sent again. An end asks when the
 *    connection is back, when the other end reports a gap, and when nothing has been acknowledged
 *    for a while. An answer counts only if its question was asked after the frames were last
 *    sent: the question travels behind them, so the answer knows whether they arrived.
 * 4. At most a window of bytes is on its way; the rest waits in `#backlog`. The window is the
 *    smaller of our own and the one that the other end grants in each frame. (A server cuts off a
 *    client for which it has to hold more than its `max_pending`; and whatever is on its way
 *    delays all that is sent after it.)
 * 5. Long bytes are attached to a message, and sent before it with their length: neither end makes
 *    a copy of them to put a message together or to take it apart.
 */

import { Timer } from '../../base/timer.ts';

/**
 * `ask`: names the last frame that was sent. `answer`: to a question; repeats that number. `gap`:
 * frames may be missing here.
 */
const KIND = { data: 1, ack: 2, answer: 3, ask: 4, gap: 5 } as const;
const KINDS: readonly number[] = Object.values(KIND);
/**
 * What a frame of data has: the last part of a message; another part of a message or attachment;
 * the length of the attachment that follows, in four bytes.
 */
const PART = { last: 0, more: 1, length: 2 } as const;
/**
 * Byte 0: the kind. Byte 1: of data, which part it is; of `ask` and `answer`, the number of the
 * question, modulo 256. Bytes 2 to 7: the number of the frame. Bytes
 * 8 to 13: the last frame that the sender has taken. Bytes 14 to 17: the window that it grants.
 */
const HEADER_BYTES = 18;
const QUESTIONS = 256;
const WINDOW_BYTES = 1024 * 1024;
/** The most bytes that are on their way in all sessions of a coordinator, in each direction. */
const SHARED_WINDOW_BYTES = 32 * 1024 * 1024;
const WINDOW_FRAMES = 4_096;
/**
 * Each frame acknowledges what was taken. If no frame goes the other way, an acknowledgement is
 * sent after ACK_FRAMES frames, ACK_BYTES, or ACK_MS.
 */
const ACK_FRAMES = 64;
const ACK_BYTES = 128 * 1024;
const ACK_MS = 20;
const ASK_MS = 1_000;
const LONGEST_ASK_MS = 8_000;
const LONGEST_MESSAGE_BYTES = 1024 ** 3;
/** The longest argument or result: shorter than a message, which holds a little more than it. */
export const LONGEST_VALUE_BYTES: number = LONGEST_MESSAGE_BYTES - 1024 ** 2;

/** @throws RangeError (`ERR_OUT_OF_RANGE`): the value is longer than LONGEST_VALUE_BYTES */
export function checkLength(value: Uint8Array): Uint8Array {
  if (value.byteLength <= LONGEST_VALUE_BYTES) return value;
  const error = new RangeError(
    `A value of ${value.byteLength} bytes is too long: over NATS the limit is ${LONGEST_VALUE_BYTES} bytes`,
  );
  throw Object.assign(error, { code: 'ERR_OUT_OF_RANGE' });
}

const LONGEST_FRAME_BYTES = 128 * 1024;

/** The longest frame for a server that accepts messages of `maxPayload` bytes. */
export const frameBytes = (maxPayload: number = LONGEST_FRAME_BYTES): number =>
  Math.min(LONGEST_FRAME_BYTES, maxPayload);

/** The window of one of `count` sessions of a coordinator, which share SHARED_WINDOW_BYTES. */
export const sharedWindowBytes = (count: number): number =>
  Math.min(WINDOW_BYTES, Math.floor(SHARED_WINDOW_BYTES / Math.max(1, count)));

export type ReliableChannelOptions = {
  /** No frame is longer, header included. */
  maxFrameBytes: number;
  /** The most bytes on their way in each direction (1 MB). One frame always may be. */
  windowBytes?: () => number;
};

export interface ReliableChannelListener {
  /** Publishes a frame. @returns false without a connection: the frame is asked for later */
  send(frame: Uint8Array): boolean;
  /** `attached`: each fills an ArrayBuffer of its own. */
  onMessage(message: Buffer, attached: readonly Buffer[]): void;
  /**
   * The other end acknowledges frames that were never sent, or sends what no end of ours does: so a third client sends frames in the name of one end. The channel is useless now.
   */
  onImpostor(): void;
}

type Sent = { seq: number; frame: Buffer };
/** `end`: which part its last frame is. */
type Waiting = { bytes: Uint8Array; end: number };

/** Puts the message that is coming together from the parts in frames. */
class Assembly {
  readonly #listener: Pick<ReliableChannelListener, 'onMessage'>;
  #parts: Buffer[] = [];
  /** The length of all parts and attachments of the message that is coming. */
  #partsBytes = 0;
  #attached: Buffer[] = [];
  /** The attachment that is coming, of which `filled` bytes are there. */
  #coming: { bytes: Buffer; filled: number } | undefined;

  constructor(listener: Pick<ReliableChannelListener, 'onMessage'>) {
    this.#listener = listener;
  }

  /** @returns false if no end of ours sends such a part here */
  take(part: Buffer, detail: number): boolean {
    if (detail === PART.length) return this.#beginAttachment(part);
    const coming = this.#coming;
    if (coming !== undefined) {
      if (detail !== PART.more || coming.filled + part.length > coming.bytes.length) return false;
      coming.filled += part.copy(coming.bytes, coming.filled);
      if (coming.filled === coming.bytes.length) {
        this.#attached.push(coming.bytes);
        this.#coming = undefined;
      }
      return true;
    }
    this.#parts.push(part);
    this.#partsBytes += part.length;
    if (this.#partsBytes > LONGEST_MESSAGE_BYTES) return false;
    if (detail === PART.last) {
      const message = this.#parts.length === 1 ? part : Buffer.concat(this.#parts);
      const attached = this.#attached;
      this.forget();
      this.#listener.onMessage(message, attached);
    }
    return true;
  }

  #beginAttachment(part: Buffer): boolean {
    if (this.#coming !== undefined || this.#parts.length > 0 || part.length !== 4) return false;
    const length = part.readUInt32BE(0);
    this.#partsBytes += length;
    if (length === 0 || this.#partsBytes > LONGEST_MESSAGE_BYTES) return false;
    this.#coming = { bytes: Buffer.allocUnsafeSlow(length), filled: 0 };
    return true;
  }

  forget(): void {
    this.#parts = [];
    this.#partsBytes = 0;
    this.#attached = [];
    this.#coming = undefined;
  }
}

export class ReliableChannel {
  readonly #listener: ReliableChannelListener;
  readonly #maxFrameBytes: number;
  readonly #windowBytes: () => number;
  /** The window that the other end grants. */
  #grantedBytes = Number.POSITIVE_INFINITY;
  /** The number of the last frame that was sent. */
  #lastSeq = 0;
  #unacked: Sent[] = [];
  #unackedBytes = 0;
  /** Bytes of which parts have not been sent, from `#sentOfFirst` of the first ones on. */
  readonly #backlog: Waiting[] = [];
  #sentOfFirst = 0;
  /** How many questions were asked. */
  #asked = 0;
  /** Older questions were asked before the unacknowledged frames were last sent. */
  #firstValid = 1;
  /** Frames are known to be lost: until the answer comes, more of them would be lost, too. */
  #isHeld = false;
  /** The number of the last frame that was taken. */
  #taken = 0;
  /** The value of `#taken` when it was last told to the other end. */
  #toldTaken = 0;
  /** The bytes of the frames that were taken since then. */
  #untoldBytes = 0;
  /** The last `#taken` with which the other end was told of a gap. */
  #toldGap = -1;
  readonly #assembly: Assembly;
  #ackTimer: Timer | undefined;
  #askTimer: Timer | undefined;
  #askMs = ASK_MS;
  /** How many messages were passed to `post`. */
  posted = 0;
  /** How many messages the other end has acknowledged as a whole. */
  acknowledgedMessages = 0;
  #onDrained: (() => void)[] = [];
  #isClosed = false;

  constructor(options: ReliableChannelOptions, listener: ReliableChannelListener) {
    this.#listener = listener;
    this.#assembly = new Assembly(listener);
    this.#maxFrameBytes = options.maxFrameBytes;
    this.#windowBytes = options.windowBytes ?? (() => WINDOW_BYTES);
  }

  /** Whether a server that accepts messages of `maxPayload` bytes accepts our frames. */
  fits(maxPayload: number | undefined): boolean {
    return this.#maxFrameBytes <= frameBytes(maxPayload);
  }

  /**
   * Sends a message, as soon as connection and window permit. Ignored after `close`.
   *
   * `attached`: bytes that nobody changes any more; none is empty.
   */
  post(message: Uint8Array, attached: readonly Uint8Array[] = []): void {
    if (this.#isClosed) return;
    for (const bytes of attached) {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.byteLength);
      this.#backlog.push({ bytes: length, end: PART.length }, { bytes, end: PART.more });
    }
    this.#backlog.push({ bytes: message, end: PART.last });
    this.posted += 1;
    this.#advance();
  }

  /** Whether messages wait for room in the window. */
  get isFull(): boolean {
    return this.#backlog.length > 0;
  }

  /** How many frames the other end has acknowledged. */
  get acknowledged(): number {
    return this.#lastSeq - this.#unacked.length;
  }

  /** Whether all messages are acknowledged. */
  get isDrained(): boolean {
    return this.#unacked.length === 0 && this.#backlog.length === 0;
  }

  /** Resolves when all messages are acknowledged, or the channel is closed. */
  drained(): Promise<void> {
    if (this.isDrained || this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onDrained.push(resolve);
    });
  }

  /** Takes a frame of the other end. @returns false if it is malformed */
  receive(frame: Uint8Array): boolean {
    if (this.#isClosed) return true;
    const buffer = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
    if (buffer.length < HEADER_BYTES) return false;
    const kind = buffer[0] ?? 0;
    const detail = buffer[1] ?? 0;
    const seq = buffer.readUIntBE(2, 6);
    const ack = buffer.readUIntBE(8, 6);
    if (!KINDS.includes(kind)) return false;
    if (ack > this.#lastSeq) {
      this.#listener.onImpostor();
      return true;
    }
    this.#grantedBytes = buffer.readUInt32BE(14);
    this.#onAck(ack);
    if (kind === KIND.data) this.#onData(seq, buffer, detail);
    else if (kind === KIND.ask) this.#tell(KIND.answer, detail, seq);
    else if (kind === KIND.answer) this.#onAnswer(detail, seq > ack);
    else if (kind === KIND.gap) this.#askAndHold();
    return true;
  }

  /** To be called when the connection is back: has both ends ask what the other one lacks. */
  resume(): void {
    if (this.#isClosed) return;
    this.#tell(KIND.gap);
    this.#firstValid = this.#asked + 1;
    this.#askMs = ASK_MS;
    this.#askAndHold();
  }

  /** Acknowledges the frames taken here; forgets the sent frames that are not acknowledged. */
  close(): void {
    if (this.#isClosed) return;
    if (this.#toldTaken !== this.#taken) this.#tell(KIND.ack);
    this.#isClosed = true;
    this.#ackTimer?.clear();
    this.#askTimer?.clear();
    this.#unacked = [];
    this.#backlog.length = 0;
    this.#assembly.forget();
    this.#tellDrained();
  }

  #tellDrained(): void {
    for (const tell of this.#onDrained.splice(0)) tell();
  }

  #onData(seq: number, buffer: Buffer, detail: number): void {
    if (seq !== this.#taken + 1) {
      // Dropped. If its number is old, our acknowledgement was lost; if too high, frames were.
      if (seq <= this.#taken) this.#ackSoon();
      else if (this.#toldGap !== this.#taken) {
        this.#toldGap = this.#taken;
        this.#tell(KIND.gap);
      }
      return;
    }
    this.#taken = seq;
    this.#untoldBytes += buffer.length;
    if (!this.#assembly.take(buffer.subarray(HEADER_BYTES), detail)) {
      this.#assembly.forget();
      this.#listener.onImpostor();
    }
    if (!this.#isClosed) this.#ackSoon(); // the message may have ended the session
  }

  #onAck(ack: number): void {
    let count = 0;
    for (const { seq, frame } of this.#unacked) {
      if (seq > ack) break;
      this.#unackedBytes -= frame.length;
      if (frame[1] === PART.last) this.acknowledgedMessages += 1;
      count += 1;
    }
    if (count > 0) {
      this.#unacked.splice(0, count);
      this.#askMs = ASK_MS;
      this.#stopWatch();
      if (this.#unacked.length === 0) this.#isHeld = false;
    }
    this.#advance();
    if (count > 0 && this.isDrained) this.#tellDrained();
  }

  #onAnswer(detail: number, isMissing: boolean): void {
    const question = this.#asked - ((this.#asked - detail) & (QUESTIONS - 1));
    if (question < this.#firstValid) return;
    this.#isHeld = false;
    if (isMissing) {
      this.#firstValid = this.#asked + 1;
      this.#stopWatch();
      for (const { frame } of this.#unacked) if (!this.#send(frame)) break;
      this.#watch();
    }
    this.#advance();
  }

  #advance(): void {
    const windowBytes = Math.min(this.#windowBytes(), this.#grantedBytes);
    const longest = this.#maxFrameBytes - HEADER_BYTES;
    let done = 0;
    while (done < this.#backlog.length) {
      const { bytes, end } = this.#backlog[done] as Waiting;
      const part = bytes.subarray(this.#sentOfFirst, this.#sentOfFirst + longest);
      if (!this.#hasRoom(HEADER_BYTES + part.byteLength, windowBytes)) break;
      this.#sentOfFirst += part.byteLength;
      const isWhole = this.#sentOfFirst >= bytes.byteLength;
      if (isWhole) {
        this.#sentOfFirst = 0;
        done += 1;
      }
      this.#sendPart(part, isWhole ? end : PART.more);
    }
    if (done > 0) this.#backlog.splice(0, done);
    this.#watch();
  }

  #hasRoom(bytes: number, windowBytes: number): boolean {
    if (this.#isHeld) return false;
    if (this.#unacked.length === 0) return true;
    return this.#unacked.length < WINDOW_FRAMES && this.#unackedBytes + bytes <= windowBytes;
  }

  #sendPart(part: Uint8Array, detail: number): void {
    const frame = Buffer.allocUnsafe(HEADER_BYTES + part.byteLength);
    const seq = ++this.#lastSeq;
    frame[0] = KIND.data;
    frame[1] = detail;
    frame.writeUIntBE(seq, 2, 6);
    frame.set(part, HEADER_BYTES);
    this.#unacked.push({ seq, frame });
    this.#unackedBytes += frame.length;
    this.#send(frame);
  }

  #send(frame: Buffer): boolean {
    frame.writeUIntBE(this.#taken, 8, 6);
    frame.writeUInt32BE(Math.min(this.#windowBytes(), 2 ** 32 - 1), 14);
    this.#toldTaken = this.#taken;
    this.#untoldBytes = 0;
    this.#ackTimer?.clear();
    this.#ackTimer = undefined;
    return this.#listener.send(frame);
  }

  #tell(kind: number, detail = 0, seq = 0): void {
    const frame = Buffer.alloc(HEADER_BYTES);
    frame[0] = kind;
    frame[1] = detail;
    frame.writeUIntBE(seq, 2, 6);
    this.#send(frame);
  }

  #ackSoon(): void {
    const isDue =
      this.#taken - this.#toldTaken >= ACK_FRAMES ||
      this.#untoldBytes >= Math.min(ACK_BYTES, this.#windowBytes() / 4);
    if (isDue) this.#tell(KIND.ack);
    else this.#ackTimer ??= new Timer(ACK_MS, () => this.#tell(KIND.ack));
  }

  #ask(): void {
    this.#asked += 1;
    this.#tell(KIND.ask, this.#asked % QUESTIONS, this.#lastSeq);
    this.#watch();
  }

  #askAndHold(): void {
    if (this.#unacked.length === 0) return;
    this.#isHeld = true;
    this.#stopWatch();
    this.#ask();
  }

  #stopWatch(): void {
    this.#askTimer?.clear();
    this.#askTimer = undefined;
  }

  /** Asks when nothing has been acknowledged for a while. */
  #watch(): void {
    if (this.#unacked.length === 0) return;
    this.#askTimer ??= new Timer(this.#askMs, () => {
      this.#askTimer = undefined;
      this.#askMs = Math.min(this.#askMs * 2, LONGEST_ASK_MS);
      this.#ask();
    });
  }
}
