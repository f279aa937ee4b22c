/** What a forked process writes to its line may be damaged: then it is nothing. */
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import type { Addon } from '../../lib/native/binding.ts';
import { FORK_FRAMES } from '../../lib/native/binding.ts';
import { compiledBinary } from '../support/published-copy.ts';

const { setup } = createRequire(import.meta.url)(compiledBinary) as Addon;
const binding = setup({
  threadId: 0,
  threadName: 'main',
  isWorker: false,
  allocateSlab: () => new Int32Array(new SharedArrayBuffer(4096)),
  onRing: () => {},
});

const u32 = (number: number): number[] => [...new Uint8Array(new Uint32Array([number]).buffer)];
const u64 = (number: number): number[] => [...u32(number), ...u32(0)];
const text = (content: string): number[] => [
  ...u32(content.length),
  ...new TextEncoder().encode(content),
];
const STOP = FORK_FRAMES.indexOf('stop');
/** Kind, language and via; thread, process and time; id, thread's name, stack, signal and error. */
const whole = [
  STOP,
  0,
  0,
  ...[7, 42, 1000].flatMap(u64),
  ...['an id', 'main', '', '', ''].flatMap(text),
];
const read = (bytes: number[]) => binding.readForkFrame(Uint8Array.from(bytes));

describe('a frame of a fork line', () => {
  it('is read when it is whole', () => {
    expect(read(whole)).toMatchObject({
      frame: STOP,
      id: 'an id',
      error: null,
      requester: { pid: 42, threadId: 7, threadName: 'main' },
    });
  });

  it('is nothing when it ends early, wherever', () => {
    for (let length = 0; length < whole.length; length += 1) {
      expect(read(whole.slice(0, length)), `${length} bytes`).toBeNull();
    }
  });

  // Of a newer version: nothing else would be read as that the other process has ended.
  it('is passed over when its kind is unknown', () => {
    expect(read(whole.with(0, 200))).toMatchObject({ frame: 8, id: '' });
  });

  it.each(['language', 'via'])('is read when its %s is unknown', (field) => {
    const at = ['kind', 'language', 'via'].indexOf(field);
    expect(read(whole.with(at, 200))).toMatchObject({ frame: STOP, id: 'an id' });
  });

  it('is nothing when a text is longer than what is left', () => {
    const at = 3 + 3 * 8;
    expect(read([...whole.slice(0, at), ...u32(0xffff_ffff), ...whole.slice(at + 4)])).toBeNull();
  });
});
