export const bytesOf = (length) => new Uint8Array(length).fill(7);

export const lengthOf = (bytes) => bytes.byteLength;
