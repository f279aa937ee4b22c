/**
 * A channel that neither loses, doubles nor reorders messages, over one that may do all
 * three: core NATS while a connection breaks. Both ends have one.
 *
 * 1. Frames are numbered from 1. What was sent stays in `#unacked` until the other end has
 *    said that it has it.
 * 2. A frame is taken only when it is the next; any other is dropped, and the other end told
 *    what is missing. So whatever arrives, messages are whole and in order.
 * 3. Frames are sent again when the connection is back, when the other end says that some
 *    are missing, and when nothing has been acknowledged for a while.
 * 4. At most a window of bytes is on its way; the rest waits here. (A server that has to keep
 *    more for one client than it likes cuts it off.)
 */

import { Timer } from '../../../base/timer.ts';

const KIND = { data: 1, ack: 2, missing: 3 } as const;
const HEADER_BYTES = 14;
const WINDOW_BYTES = 8 * 1024 * 1024;
const WINDOW_FRAMES = 4_096;
/** So many frames are acknowledged at once; fewer, when nothing has gone the other way. */
const ACK_FRAMES = 64;
const ACK_MS = 20;
const RESEND_MS = 1_000;
const LONGEST_RESEND_MS = 8_000;
const LONGEST_MESSAGE_BYTES = 1024 ** 3;
/** Of what a message is sent for; the message holds a little more. */
export const LONGEST_VALUE_BYTES: number = LONGEST_MESSAGE_BYTES - 1024 ** 2;

/** @throws RangeError (`ERR_OUT_OF_RANGE`): no message can hold it */
export function checkLength(value: Uint8Array): Uint8Array {
  if (value.byteLength <= LONGEST_VALUE_BYTES) return value;
  const error = new RangeError(
    `A value of ${value.byteLength} bytes is too long: ${LONGEST_VALUE_BYTES} are the limit over NATS`,
  );
  throw Object.assign(error, { code: 'ERR_OUT_OF_RANGE' });
}

const LONGEST_FRAME_BYTES = 256 * 1024;

/** How long a frame may be with a server that takes messages of so many bytes. */
export const frameBytes = (maxPayload: number = LONGEST_FRAME_BYTES): number =>
  Math.min(LONGEST_FRAME_BYTES, maxPayload);

export type ReliableChannelOptions = {
  /** A frame longer than this is not sent. */
  maxFrameBytes: number;
  /** So much is on its way at most (8 MB). */
  windowBytes?: number;
  /** Puts a frame on its way; false: there is no connection. */
  send(frame: Uint8Array): boolean;
  onMessage(message: Buffer): void;
  /**
   * The other end has what we have not sent, or sends what it never would: somebody has
   * spoken in our place, or in its. The channel is of no use any more.
   */
  onImpostor(): void;
};

type Sent = { seq: number; frame: Buffer };

export class ReliableChannel {
  readonly #options: ReliableChannelOptions;
  readonly #windowBytes: number;
  #lastSeq = 0;
  #unacked: Sent[] = [];
  #unackedBytes = 0;
  readonly #backlog: Sent[] = [];
  /** What was taken last. */
  #taken = 0;
  /** What the other end was told of that. */
  #toldTaken = 0;
  /** After this one something is missing, and the other end was told so. */
  #toldMissing = -1;
  #parts: Buffer[] = [];
  #partsBytes = 0;
  #ackTimer: Timer | undefined;
  #resendTimer: Timer | undefined;
  #resendMs = RESEND_MS;
  #onDrained: (() => void)[] = [];
  #isClosed = false;

  constructor(options: ReliableChannelOptions) {
    this.#options = options;
    this.#windowBytes = options.windowBytes ?? WINDOW_BYTES;
  }

  /** Whether its frames are not too long for such a server. */
  fits(maxPayload: number | undefined): boolean {
    return this.#options.maxFrameBytes <= frameBytes(maxPayload);
  }

  /** Sends a message, sooner or later. */
  post(message: Uint8Array): void {
    if (this.#isClosed) return;
    const longest = this.#options.maxFrameBytes - HEADER_BYTES;
    for (let at = 0; at === 0 || at < message.byteLength; at += longest) {
      const part = message.subarray(at, at + longest);
      const frame = Buffer.allocUnsafe(HEADER_BYTES + part.byteLength);
      frame[0] = KIND.data;
      frame[1] = at + longest < message.byteLength ? 1 : 0; // more of it follows
      frame.writeUIntBE(++this.#lastSeq, 2, 6);
      frame.set(part, HEADER_BYTES);
      this.#backlog.push({ seq: this.#lastSeq, frame });
    }
    this.#advance();
  }

  /** Whether more than the window waits to be sent. */
  get isFull(): boolean {
    return this.#backlog.length > 0;
  }

  /** Whether nothing is left to be acknowledged. */
  get isDrained(): boolean {
    return this.#unacked.length === 0 && this.#backlog.length === 0;
  }

  /** Resolves when the other end has everything, or the channel is closed. */
  drained(): Promise<void> {
    if (this.isDrained || this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onDrained.push(resolve);
    });
  }

  /** A frame from the other end. False: it is none. */
  receive(frame: Uint8Array): boolean {
    if (this.#isClosed) return true;
    const buffer = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
    if (buffer.length < HEADER_BYTES) return false;
    const kind = buffer[0];
    const seq = buffer.readUIntBE(2, 6);
    const ack = buffer.readUIntBE(8, 6);
    const isOurs = kind === KIND.data || kind === KIND.ack || kind === KIND.missing;
    if (!isOurs) return false;
    if (ack > this.#lastSeq) {
      this.#options.onImpostor();
      return true;
    }
    this.#onAck(ack);
    if (kind === KIND.missing) this.#resend();
    if (kind !== KIND.data) return true;
    if (seq !== this.#taken + 1) {
      this.#onUnexpected(seq);
      return true;
    }
    this.#taken = seq;
    this.#onPart(buffer.subarray(HEADER_BYTES), buffer[1] === 1);
    if (!this.#isClosed) this.#ackSoon(); // the message may have been the last
    return true;
  }

  /** The connection is back. */
  resume(): void {
    if (this.#isClosed) return;
    this.#resendMs = RESEND_MS;
    this.#resend();
    this.#tell(KIND.ack);
  }

  /** The other end is told what has been taken; what is not acknowledged is given up. */
  close(): void {
    if (this.#isClosed) return;
    if (this.#toldTaken !== this.#taken) this.#tell(KIND.ack);
    this.#isClosed = true;
    this.#ackTimer?.clear();
    this.#resendTimer?.clear();
    this.#unacked = [];
    this.#backlog.length = 0;
    this.#parts = [];
    this.#tellDrained();
  }

  #tellDrained(): void {
    for (const tell of this.#onDrained.splice(0)) tell();
  }

  #onPart(part: Buffer, hasMore: boolean): void {
    if (!hasMore && this.#parts.length === 0) {
      this.#options.onMessage(part);
      return;
    }
    this.#parts.push(part);
    this.#partsBytes += part.length;
    if (this.#partsBytes > LONGEST_MESSAGE_BYTES) {
      this.#parts = [];
      this.#options.onImpostor();
      return;
    }
    if (hasMore) return;
    const message = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#partsBytes = 0;
    this.#options.onMessage(message);
  }

  /** One that we have: our word of it was lost. One that is too early: something was. */
  #onUnexpected(seq: number): void {
    if (seq <= this.#taken) this.#ackSoon();
    else if (this.#toldMissing !== this.#taken) {
      this.#toldMissing = this.#taken;
      this.#tell(KIND.missing);
    }
  }

  #onAck(ack: number): void {
    let count = 0;
    for (const { seq, frame } of this.#unacked) {
      if (seq > ack) break;
      this.#unackedBytes -= frame.length;
      count += 1;
    }
    if (count === 0) return;
    this.#unacked.splice(0, count);
    this.#resendMs = RESEND_MS;
    this.#resendTimer?.clear();
    this.#resendTimer = undefined;
    this.#advance();
    if (this.isDrained) this.#tellDrained();
  }

  #advance(): void {
    let count = 0;
    for (const sent of this.#backlog) {
      const isFull =
        this.#unacked.length >= WINDOW_FRAMES || this.#unackedBytes >= this.#windowBytes;
      if (isFull) break;
      count += 1;
      this.#unacked.push(sent);
      this.#unackedBytes += sent.frame.length;
      this.#send(sent.frame);
    }
    this.#backlog.splice(0, count);
    if (this.#unacked.length > 0) this.#watch();
  }

  #send(frame: Buffer): boolean {
    frame.writeUIntBE(this.#taken, 8, 6);
    this.#toldTaken = this.#taken;
    this.#ackTimer?.clear();
    this.#ackTimer = undefined;
    return this.#options.send(frame);
  }

  #tell(kind: number): void {
    const frame = Buffer.alloc(HEADER_BYTES);
    frame[0] = kind;
    this.#send(frame);
  }

  #ackSoon(): void {
    if (this.#isClosed) return; // by what was in the message
    if (this.#taken - this.#toldTaken >= ACK_FRAMES) this.#tell(KIND.ack);
    else this.#ackTimer ??= new Timer(ACK_MS, () => this.#tell(KIND.ack));
  }

  #resend(): void {
    for (const { frame } of this.#unacked) if (!this.#send(frame)) break;
    if (this.#unacked.length > 0) this.#watch();
  }

  #watch(): void {
    this.#resendTimer ??= new Timer(this.#resendMs, () => {
      this.#resendTimer = undefined;
      this.#resendMs = Math.min(this.#resendMs * 2, LONGEST_RESEND_MS);
      this.#resend();
    });
  }
}
