/**
 * Counts the items of a queue. An item is the number of its producer and a sequence number. A
 * consumer counts each item at once, in memory that all threads share.
 */

export type Item = readonly [producer: number, sequence: number];

export function toBytes(producer: number, sequence: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(producer, sequence).buffer);
}

export class Accounts {
  readonly producers: number;
  readonly perProducer: number;
  /** How often each item has been received. */
  readonly seen: Int32Array;

  constructor(producers: number, perProducer: number) {
    this.producers = producers;
    this.perProducer = perProducer;
    this.seen = new Int32Array(new SharedArrayBuffer(4 * producers * perProducer));
  }

  count([producer, sequence]: Item): void {
    Atomics.add(this.seen, producer * this.perProducer + sequence, 1);
  }

  /** The items with a wrong count, if `enqueued[i]` items of producer i were enqueued. */
  wrong(enqueued: number[]): string[] {
    const found: string[] = [];
    for (let producer = 0; producer < this.producers; ++producer) {
      for (let sequence = 0; sequence < this.perProducer; ++sequence) {
        const times = this.seen[producer * this.perProducer + sequence];
        const wanted = sequence < (enqueued[producer] as number) ? 1 : 0;
        if (times !== wanted) found.push(`item ${sequence} of ${producer}: ${times} times`);
      }
    }
    return found;
  }
}
