/** The seam between calls with a key and the stores that keep their results. */

/**
 * Keeps records by name. Each is whole or not there, also if two programs put one at once: then the
 * last one counts. A name has 64 hexadecimal digits.
 */
export interface ResultStore {
  /** @throws (rejects) UnavailableError: the store cannot be read */
  get(name: string): Promise<Uint8Array | undefined>;
  /**
   * Resolves when the record survives the death of this program.
   *
   * @param mayWrite - awaited before the record becomes visible, at each attempt: it rejects if the
   *   program may write no more
   * @throws (rejects) UnavailableError: the store cannot be written; the error of `mayWrite`
   */
  put(name: string, record: Uint8Array, mayWrite: () => Promise<void>): Promise<void>;
  /** Where the record of this name is, for messages. */
  whereIs(name: string): string;
  /** Resolves when nothing of the store keeps the program alive. Nothing is called afterwards. */
  close(): Promise<void>;
}
