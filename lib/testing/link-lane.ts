/**
 * One direction of one connection through a LinkProxy: carries bytes late and slowly, in order, and
 * loses none while the connection lives.
 *
 * 1. `#pieces` holds what was read and not written, with the time from which each may be written.
 * 2. At most one timer is armed, or the lane waits for `drain` of its target, or for `resume`; else
 *    `#pieces` is empty. So nothing stands still except while the link is stalled.
 * 3. Above `#window` bytes the source is paused: the sender's queue grows, as before a slow link.
 */

import type { Socket } from 'node:net';
import { now } from '../base/timer.ts';

/** The conditions of a link, shared by all its lanes, which read them when they write. */
export type LinkConditions = { bytesPerSecond: number; latencyMs: number; isStalled: boolean };

/** What a lane reads in advance, beside what is under way for as long as the latency. */
const WINDOW_BYTES = 65_536;
const MOST_UNDER_WAY_BYTES = 16 * 1_048_576;
/** A slow link carries as much at a time as it carries in this time. */
const STEP_MS = 10;

// Captured on import: fake timers that a test installs later do not stop the link.
const { setTimeout: startTimer, clearTimeout: clearTimer } = globalThis;

export class LinkLane {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #link: LinkConditions;
  #pieces: { data: Buffer; dueAt: number }[] = [];
  #bytes = 0;
  /** When the link has carried what was written last. */
  #freeAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #isBlocked = false;
  #hasEnded = false;

  constructor(from: Socket, to: Socket, link: LinkConditions) {
    this.#from = from;
    this.#to = to;
    this.#link = link;
    from.on('data', (data: Buffer) => this.#take(data));
    from.on('end', () => {
      this.#hasEnded = true;
      this.#carry();
    });
    to.on('drain', () => {
      this.#isBlocked = false;
      this.#carry();
    });
  }

  /** Call it when the conditions of the link have changed. */
  resume(): void {
    clearTimer(this.#timer);
    this.#timer = undefined;
    this.#freeAt = Math.min(this.#freeAt, now());
    this.#carry();
  }

  /** Drops everything: the connection is gone. */
  close(): void {
    clearTimer(this.#timer);
    this.#pieces = [];
  }

  get #window(): number {
    const { bytesPerSecond, latencyMs } = this.#link;
    const underWay = latencyMs === 0 ? 0 : (bytesPerSecond * latencyMs) / 1_000;
    return WINDOW_BYTES + Math.min(underWay, MOST_UNDER_WAY_BYTES);
  }

  #take(data: Buffer): void {
    this.#pieces.push({ data, dueAt: now() + this.#link.latencyMs });
    this.#bytes += data.length;
    if (this.#bytes > this.#window) this.#from.pause();
    this.#carry();
  }

  #carry(): void {
    if (this.#timer !== undefined || this.#isBlocked || this.#link.isStalled) return;
    for (let piece = this.#pieces[0]; piece !== undefined; piece = this.#pieces[0]) {
      const { bytesPerSecond } = this.#link;
      const time = now();
      const wait = Math.max(piece.dueAt, this.#freeAt) - time;
      if (wait > 0) {
        this.#timer = startTimer(() => {
          this.#timer = undefined;
          this.#carry();
        }, Math.ceil(wait));
        return;
      }
      const most = Math.max(1, Math.ceil((bytesPerSecond * STEP_MS) / 1_000));
      const part = piece.data.subarray(0, Math.min(most, piece.data.length));
      if (part.length === piece.data.length) this.#pieces.shift();
      else piece.data = piece.data.subarray(part.length);
      this.#bytes -= part.length;
      this.#freeAt = time + (part.length / bytesPerSecond) * 1_000;
      this.#isBlocked = !this.#to.write(part);
      if (this.#bytes <= this.#window) this.#from.resume();
      if (this.#isBlocked) return;
    }
    if (this.#hasEnded) this.#to.end();
  }
}
