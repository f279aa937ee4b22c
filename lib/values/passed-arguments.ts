/**
 * The arguments of a call on their way to a worker: values, or packed. If they are
 * a Uint8Array, the worker packs the result, too.
 */
export type PassedArguments = readonly unknown[] | ArrayBuffer | Uint8Array;
