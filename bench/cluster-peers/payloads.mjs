/** The functions of payloads.mjs, for the cluster and its peers. */
export const size = (value) => value.byteLength ?? value.length ?? 1;
export const echo = (value) => value;
