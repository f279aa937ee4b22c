/** What the fields of a message may be. A message comes from anybody: nothing of it is believed. */

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;
export const isText = (value: unknown): value is string => typeof value === 'string';
/** A name of a machine, a version: no longer than such are. */
export const isWord = (value: unknown): value is string => isText(value) && value.length <= 256;
export const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;
export const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array;
export const isMaybe = (is: (value: unknown) => boolean, value: unknown): boolean =>
  value === undefined || is(value);
/** No list of ours is longer. One with holes costs its sender nothing, whatever its length. */
export const LONGEST_LIST = 100_000;
export const isListOf = (is: (value: unknown) => boolean, value: unknown): value is unknown[] =>
  Array.isArray(value) && value.length <= LONGEST_LIST && Array.from(value).every(is);

export const isName = (value: unknown): boolean =>
  isText(value) && /^[A-Za-z0-9_-]{1,64}$/.test(value);
