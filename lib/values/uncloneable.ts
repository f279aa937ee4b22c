/**
 * Objects that no serializer takes. structuredClone copies the enumerable properties of an object,
 * and not the private fields of its class: a RemoteValue among other values would arrive as `{}`.
 * So such an object has a property that cannot be cloned; the serializer itself finds it,
 * wherever the object is, and no walk of ours through all values is needed.
 */

/** Values for a property named `uncloneable`: the description of each is the error's message. */
export const NO_REMOTE_VALUE: symbol = Symbol(
  'A RemoteValue can only be an argument itself, of a function, not inside another value: fetch() it first, and pass its value',
);
export const NO_PER_WORKER_VALUES: symbol = Symbol(
  'PerWorkerValues can only be arguments themselves, not inside another value, and only in the cluster that made them',
);

/** The message for an object whose `uncloneable` made a serializer throw `error`; else undefined. */
export function whyUncloneable(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const found = [NO_REMOTE_VALUE, NO_PER_WORKER_VALUES].find((each) =>
    error.message.includes(String(each)),
  );
  return found?.description;
}
