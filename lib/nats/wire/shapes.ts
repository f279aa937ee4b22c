/** Guards for messages and their fields, which any client of the server can send. */

export type Guard<T> = (value: unknown) => value is T;

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
export const cleaned = (value: string): string =>
  value.replaceAll(/[^\x20-\x7e]+/g, ' ').slice(0, 256);
export const isNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value);
export const isCount = (value: unknown): value is number =>
  isNumber(value) && Number.isSafeInteger(value) && value >= 0;
export const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
export const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array;
export const isNull = (value: unknown): value is null => value === null;
/** The name of a run, session, node or cluster: a token of a subject. */
export const isName = (value: unknown): value is string =>
  isText(value) && /^[A-Za-z0-9_-]{1,64}$/.test(value);

export const isOneOf =
  <T extends string>(...texts: readonly T[]): Guard<T> =>
  (value): value is T =>
    texts.some((text) => text === value);
export const isEither =
  <T, U>(is: Guard<T>, isOther: Guard<U>): Guard<T | U> =>
  (value): value is T | U =>
    is(value) || isOther(value);
export const isMaybe =
  <T>(is: Guard<T>): Guard<T | undefined> =>
  (value): value is T | undefined =>
    value === undefined || is(value);
/** Longer than any list of allstop's. Without a limit, a forged sparse list could be endless. */
export const LONGEST_LIST = 100_000;
export const isListOf =
  <T>(is: Guard<T>, longest: number = LONGEST_LIST): Guard<T[]> =>
  (value): value is T[] =>
    Array.isArray(value) && value.length <= longest && Array.from(value).every(is);

/** A guard for each field of a record. */
export type Layout<T> = {
  readonly [K in keyof T]-?: T extends Record<K, unknown> ? Guard<T[K]> : Guard<T[K] | undefined>;
};

/** Fields that the layout does not name are ignored: a later version may send them. */
export function isRecord<T extends object>(layout: Layout<T>): Guard<T> {
  const guards = Object.entries<Guard<unknown>>(layout);
  return (value): value is T =>
    isObject(value) && guards.every(([name, isField]) => isField(value[name]));
}

/** By kind, the layouts of messages whose `kind` tells which one each is. */
export type Layouts<M extends { kind: string }> = {
  readonly [K in M['kind']]: Layout<Omit<Extract<M, { kind: K }>, 'kind'>>;
};

export function isMessage<M extends { kind: string }>(layouts: Layouts<M>): Guard<M> {
  const entries = Object.entries<Layout<object>>(layouts);
  const guards = new Map(entries.map(([kind, layout]) => [kind, isRecord(layout)]));
  return (value): value is M =>
    isObject(value) && isText(value['kind']) && guards.get(value['kind'])?.(value) === true;
}
