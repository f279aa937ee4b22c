/**
 * One end of a channel that neither loses, doubles nor reorders messages, over core NATS, which
 * may do all three while a connection breaks.
 *
 * 1. Frames are numbered from 1. A sent frame stays in `#unacked` until the other end has
 *    acknowledged it.
 * 2. A frame is taken only if its number is the next; any other frame is dropped, and the other
 *    end told what is missing. So messages arrive whole and in order.
 * 3. Unacknowledged frames are sent again when the connection is back, when the other end says
 *    that frames are missing, and when nothing has been acknowledged for a while.
 * 4. At most a window of bytes is on its way; the rest waits in `#backlog`. (A server cuts off a
 *    client for which it has to hold more than its `max_pending`.)
 */

import { Timer } from '../../../base/timer.ts';

const KIND = { data: 1, ack: 2, missing: 3 } as const;
const HEADER_BYTES = 14;
const WINDOW_BYTES = 8 * 1024 * 1024;
const WINDOW_FRAMES = 4_096;
/**
 * Each frame also acknowledges the frames that its sender has taken. An end that has no frame to
 * send sends an acknowledgement after it has taken ACK_FRAMES frames, or after ACK_MS.
 */
const ACK_FRAMES = 64;
const ACK_MS = 20;
const RESEND_MS = 1_000;
const LONGEST_RESEND_MS = 8_000;
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

const LONGEST_FRAME_BYTES = 256 * 1024;

/** The longest frame for a server that accepts messages of `maxPayload` bytes. */
export const frameBytes = (maxPayload: number = LONGEST_FRAME_BYTES): number =>
  Math.min(LONGEST_FRAME_BYTES, maxPayload);

export type ReliableChannelOptions = {
  /** No frame is longer, header included. */
  maxFrameBytes: number;
  /** The most bytes on their way (8 MB). */
  windowBytes?: number;
};

export interface ReliableChannelListener {
  /** Publishes a frame. @returns false without a connection: `resume` sends the frame again */
  send(frame: Uint8Array): boolean;
  onMessage(message: Buffer): void;
  /**
   * The other end acknowledges frames that were never sent, or sends a message longer than
   * allstop's: so a third client sends frames in the name of one end. The channel is useless now.
   */
  onImpostor(): void;
}

type Sent = { seq: number; frame: Buffer };

export class ReliableChannel {
  readonly #listener: ReliableChannelListener;
  readonly #maxFrameBytes: number;
  readonly #windowBytes: number;
  #lastSeq = 0;
  #unacked: Sent[] = [];
  #unackedBytes = 0;
  readonly #backlog: Sent[] = [];
  /** The number of the last frame that was taken. */
  #taken = 0;
  /** The value of `#taken` when it was last told to the other end. */
  #toldTaken = 0;
  /** The value of `#taken` when the other end was last told that frames are missing. */
  #toldMissing = -1;
  #parts: Buffer[] = [];
  #partsBytes = 0;
  #ackTimer: Timer | undefined;
  #resendTimer: Timer | undefined;
  #resendMs = RESEND_MS;
  #onDrained: (() => void)[] = [];
  #isClosed = false;

  constructor(options: ReliableChannelOptions, listener: ReliableChannelListener) {
    this.#listener = listener;
    this.#maxFrameBytes = options.maxFrameBytes;
    this.#windowBytes = options.windowBytes ?? WINDOW_BYTES;
  }

  /** Whether a server that accepts messages of `maxPayload` bytes accepts our frames. */
  fits(maxPayload: number | undefined): boolean {
    return this.#maxFrameBytes <= frameBytes(maxPayload);
  }

  /** Sends a message, as soon as connection and window permit. Ignored after `close`. */
  post(message: Uint8Array): void {
    if (this.#isClosed) return;
    const longest = this.#maxFrameBytes - HEADER_BYTES;
    for (let at = 0; at === 0 || at < message.byteLength; at += longest) {
      const part = message.subarray(at, at + longest);
      const frame = Buffer.allocUnsafe(HEADER_BYTES + part.byteLength);
      frame[0] = KIND.data;
      // 1: more parts of the message follow this one.
      frame[1] = at + longest < message.byteLength ? 1 : 0;
      frame.writeUIntBE(++this.#lastSeq, 2, 6);
      frame.set(part, HEADER_BYTES);
      this.#backlog.push({ seq: this.#lastSeq, frame });
    }
    this.#advance();
  }

  /** Whether frames wait for room in the window. */
  get isFull(): boolean {
    return this.#backlog.length > 0;
  }

  /** Whether all frames are acknowledged. */
  get isDrained(): boolean {
    return this.#unacked.length === 0 && this.#backlog.length === 0;
  }

  /** Resolves when all frames are acknowledged, or the channel is closed. */
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
    const kind = buffer[0];
    const seq = buffer.readUIntBE(2, 6);
    const ack = buffer.readUIntBE(8, 6);
    const isOurs = kind === KIND.data || kind === KIND.ack || kind === KIND.missing;
    if (!isOurs) return false;
    if (ack > this.#lastSeq) {
      this.#listener.onImpostor();
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
    if (!this.#isClosed) this.#ackSoon(); // the message may have ended the session
    return true;
  }

  /** To be called when the connection is back: sends all unacknowledged frames again. */
  resume(): void {
    if (this.#isClosed) return;
    this.#resendMs = RESEND_MS;
    this.#resend();
    this.#tell(KIND.ack);
  }

  /** Acknowledges the frames taken here; forgets the sent frames that are not acknowledged. */
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
      this.#listener.onMessage(part);
      return;
    }
    this.#parts.push(part);
    this.#partsBytes += part.length;
    if (this.#partsBytes > LONGEST_MESSAGE_BYTES) {
      this.#parts = [];
      this.#listener.onImpostor();
      return;
    }
    if (hasMore) return;
    const message = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#partsBytes = 0;
    this.#listener.onMessage(message);
  }

  /**
   * Drops a frame. If its number is old, our acknowledgement was lost; if too high, frames were.
   */
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
    return this.#listener.send(frame);
  }

  #tell(kind: number): void {
    const frame = Buffer.alloc(HEADER_BYTES);
    frame[0] = kind;
    this.#send(frame);
  }

  #ackSoon(): void {
    if (this.#isClosed) return; // the receiver of the message has closed the channel
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
