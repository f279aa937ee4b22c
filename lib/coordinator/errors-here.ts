/** The errors of one coordinator in this JavaScript thread: the same bytes give the same value. */

import type { NativeAttachment, NativeRecord } from '../native/binding.ts';
import { binding } from '../native/native.ts';
import { decode } from '../record/encoded-error.ts';
import type { Carried } from '../record/error-identity.ts';
import { type StopRecord, toStopRecord } from '../record/stop-record.ts';

/** How many are kept alive, so that they keep their identity. */
const MOST_HELD = 64;

export class ErrorsHere {
  readonly #native: NativeAttachment;
  #held: Map<string, Carried> | undefined; // by id, the oldest first

  #isExpected: (error: unknown) => boolean = () => false;

  constructor(native: NativeAttachment) {
    this.#native = native;
  }

  /** Keeps the value of an error that this thread has reported: a record gives this object. */
  hold(carried: Carried): void {
    this.#held ??= new Map();
    this.#held.delete(carried.id);
    this.#held.set(carried.id, carried);
    if (this.#held.size <= MOST_HELD) return;
    for (const oldest of this.#held.keys()) {
      this.#held.delete(oldest);
      break;
    }
  }

  /**
   * A stop is on its way, and such an error of a thread is an echo of it, before it has come, too.
   */
  expect(isExpected: (error: unknown) => boolean): void {
    this.#isExpected = isExpected;
  }

  isExpected(error: unknown): boolean {
    return this.#isExpected(error);
  }

  forget(): void {
    this.#held?.clear();
  }

  /** The value of an encoded error: the same value each time, also if it is decoded again. */
  of(bytes: Uint8Array): Carried {
    const carried = decode(bytes);
    this.hold(carried);
    return carried;
  }

  /** The value of an encoded error that the program is given now: it was not lost. */
  give(bytes: Uint8Array): unknown {
    const { id, value } = this.of(bytes);
    binding().giveError(id);
    return value;
  }

  /** `isGiven`: whether the program is given the record, and with it the errors. */
  record(isGiven = true): StopRecord | undefined {
    const native = this.#native.record();
    return native === null ? undefined : this.toRecord(native, isGiven);
  }

  toRecord(native: NativeRecord, isGiven: boolean): StopRecord {
    const valueOf = (bytes: Uint8Array): unknown =>
      isGiven ? this.give(bytes) : this.of(bytes).value;
    return toStopRecord(native, this.#native, valueOf);
  }
}
