/** Guards for the fields of messages, which any client of the server can send. */

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;
export const isText = (value: unknown): value is string => typeof value === 'string';
/**
 * The name of a machine, a version: printable ASCII of bounded length, since programs log it and
 * print it to terminals.
 */
export const isWord = (value: unknown): value is string =>
  isText(value) && /^[\x20-\x7e]{0,256}$/.test(value);
/** Text of a word's length that is no word: it has characters that are not printable ASCII. */
export const isUnprintable = (value: unknown): value is string =>
  isText(value) && value.length <= 256 && !isWord(value);
/** The text as a word, with spaces in place of what is not printable ASCII. */
export const cleaned = (value: string): string => value.replaceAll(/[^\x20-\x7e]+/g, ' ');
export const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;
export const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
export const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array;
export const isMaybe = (is: (value: unknown) => boolean, value: unknown): boolean =>
  value === undefined || is(value);
/** Longer than any list of allstop's. Without a limit, a forged sparse list could be endless. */
export const LONGEST_LIST = 100_000;
export const isListOf = (is: (value: unknown) => boolean, value: unknown): value is unknown[] =>
  Array.isArray(value) && value.length <= LONGEST_LIST && Array.from(value).every(is);

/** The name of a run, session, node or cluster: a token of a subject. */
export const isName = (value: unknown): boolean =>
  isText(value) && /^[A-Za-z0-9_-]{1,64}$/.test(value);
