// Changes inputs at random. A generator with a seed, so that a run can be repeated.

/** mulberry32: a small generator of 32-bit numbers. @returns a function: an integer below `limit` */
export function randomOf(seed) {
  let state = seed >>> 0;
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}

const BYTES = [0, 1, 2, 8, 10, 32, 34, 48, 91, 123, 127, 128, 254, 255];
const WORDS = [0, 1, 5, 0xff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff];

/** The bytes by which a literal of the program under test may stand in an input. */
export function dictionaryOf(literals) {
  return literals.flatMap((literal) => {
    if (typeof literal === 'string') {
      return literal.length > 0 && literal.length <= 64 ? [Buffer.from(literal)] : [];
    }
    const double = Buffer.alloc(8);
    double.writeDoubleLE(literal);
    const forms = [Buffer.from(String(literal)), double];
    if (Number.isInteger(literal) && literal >= 0 && literal <= 0xffffffff) {
      const word = Buffer.alloc(4);
      word.writeUInt32LE(literal);
      forms.push(word, Buffer.from(word.toReversed()));
    }
    return forms;
  });
}

/** One random change. `others`: the corpus, for pieces of other inputs. */
function change(bytes, random, dictionary, others) {
  const at = random(bytes.length + 1);
  const insert = (piece) => Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at)]);
  const overwrite = (piece) =>
    Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at + piece.length)]);
  const length = random(Math.min(32, bytes.length - at) + 1);
  const word = Buffer.alloc(4);
  const value = WORDS[random(WORDS.length)];
  switch (random(11)) {
    case 0:
      return overwrite(Buffer.of(random(256)));
    case 1:
      return overwrite(Buffer.of(BYTES[random(BYTES.length)]));
    case 2:
      return insert(Buffer.of(random(2) === 0 ? random(256) : BYTES[random(BYTES.length)]));
    case 3: // removes some bytes
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
    case 4:
      return bytes.subarray(0, at);
    case 5: // doubles some bytes
      return insert(bytes.subarray(at, at + length));
    case 6: {
      word[random(2) === 0 ? 'writeUInt32LE' : 'writeUInt32BE'](value);
      return overwrite(word);
    }
    case 7: {
      const copy = Buffer.from(bytes);
      if (copy.length > 0) copy[at % copy.length] ^= 1 << random(8);
      return copy;
    }
    case 8: {
      const other = others[random(others.length)] ?? bytes;
      const from = random(other.length + 1);
      return Buffer.concat([bytes.subarray(0, at), other.subarray(from)]);
    }
    default: {
      const piece = dictionary[random(dictionary.length || 1)] ?? word;
      return random(2) === 0 ? insert(piece) : overwrite(piece);
    }
  }
}

const LONGEST = 16_384;

export function mutate(bytes, random, dictionary, others) {
  let changed = bytes;
  for (let count = 1 + random(5); count > 0; count -= 1) {
    changed = change(changed, random, dictionary, others);
  }
  return changed.subarray(0, LONGEST);
}
