/**
 * Frames of a session. First the input is frames of a stranger: each is taken or refused, and the
 * channel takes no more memory than they have. Then the input decides which frames between two
 * honest ends are lost, doubled or late: the messages arrive once each, whole and in order.
 */

import { ReliableChannel } from '../../../lib/nats/wire/reliable-channel.ts';
import { unpackToNode } from '../../../lib/nats/wire/session-messages.ts';
import { must } from './oracle.ts';

/** V8 reserves the length that a sparse array says: see "Fuzzing" in docs/testing.md. */
export const takesMemory = true;

const FRAME_BYTES = 40;
const WINDOW_BYTES = 120;

class End {
  readonly channel: ReliableChannel;
  readonly taken: string[] = [];
  wire: Uint8Array[] = [];
  impostors = 0;

  constructor() {
    this.channel = new ReliableChannel(
      { maxFrameBytes: FRAME_BYTES, windowBytes: () => WINDOW_BYTES },
      {
        send: (frame) => {
          must(frame.byteLength <= FRAME_BYTES, 'no frame is too long');
          this.wire.push(Uint8Array.from(frame));
          return true;
        },
        onMessage: (message, attached) => {
          unpackToNode(message, attached);
          const all = [...attached, message].map((bytes) => bytes.toString('latin1'));
          this.taken.push(all.join('|'));
        },
        onImpostor: () => {
          this.impostors += 1;
          this.channel.close();
        },
      },
    );
  }
}

/** The frames of the input, each behind its length. */
function* framesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; ) {
    const length = bytes[at] as number;
    yield bytes.subarray(at + 1, at + 1 + length);
    at += 1 + length;
  }
}

function receiveFromStranger(bytes: Uint8Array): void {
  const end = new End();
  end.channel.post(Buffer.from('a message that fills several frames, since each is short'));
  for (const frame of framesOf(bytes)) {
    const sentBefore = end.wire.length;
    const isTaken = end.channel.receive(frame);
    must(isTaken || frame.length < 18 || ![1, 2, 3, 4, 5].includes(frame[0] as number), 'refused');
    must(end.wire.length - sentBefore <= 8, 'a frame is answered by few frames');
    must(end.impostors <= 1, 'a channel ends once');
  }
  const length = end.taken.reduce((sum, message) => sum + message.length, 0);
  must(length <= bytes.length, 'messages are no longer than their frames');
  end.channel.close();
}

function talkOverBadLine(bytes: Uint8Array): void {
  const ends = [new End(), new End()] as const;
  const posted: [string[], string[]] = [[], []];
  const deliver = (from: 0 | 1, fate: number): void => {
    const wire = ends[from].wire;
    const frame = wire[fate % 5 === 4 ? wire.length - 1 : 0];
    if (frame === undefined) return;
    if (fate % 5 !== 3) wire.splice(wire.indexOf(frame), 1); // 3: it stays, so arrives twice
    if (fate % 5 !== 2) must(ends[(1 - from) as 0 | 1].channel.receive(frame), 'a frame is taken');
  };
  for (const byte of bytes.subarray(0, 300)) {
    const from = (byte & 1) as 0 | 1;
    if (byte % 16 > 11 && posted[from].length < 20) {
      const message = `${posted[from].length}:${'x'.repeat(byte >> 2)}`;
      posted[from].push(byte % 16 > 13 ? `${message}|${message}` : message);
      ends[from].channel.post(Buffer.from(message), byte % 16 > 13 ? [Buffer.from(message)] : []);
    } else if (byte === 9) {
      for (const end of ends) end.channel.resume();
    } else deliver(from, byte >> 1);
  }
  // The line is good again: each end asks what it lacks.
  for (let round = 0; round < 500; round += 1) {
    if (ends.every(({ channel, wire }) => channel.isDrained && wire.length === 0)) break;
    if (ends.every(({ wire }) => wire.length === 0)) for (const end of ends) end.channel.resume();
    for (const from of [0, 1] as const) while (ends[from].wire.length > 0) deliver(from, 0);
  }
  for (const from of [0, 1] as const) {
    const { taken } = ends[(1 - from) as 0 | 1];
    must(taken.join('\n') === posted[from].join('\n'), 'the messages arrive once, in order');
    must(ends[from].impostors === 0, 'an honest end is no impostor');
  }
  for (const { channel } of ends) channel.close();
}

export function fuzz(bytes: Uint8Array): void {
  receiveFromStranger(bytes);
  talkOverBadLine(bytes);
}
