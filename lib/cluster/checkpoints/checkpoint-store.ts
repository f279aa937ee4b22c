/** The seam between Checkpoint and the places where checkpoints are kept. */

/** The bytes of one checkpoint. */
export interface CheckpointSource {
  readonly size: number;
  /**
   * Fills `into` with the bytes that begin at `at`.
   *
   * @throws (rejects) NotACheckpoint: there are fewer, or they cannot be read
   */
  read(into: Uint8Array, at: number): Promise<void>;
  close(): Promise<void>;
}

/** What a store has, while it is in use. */
export interface CheckpointFiles {
  /** The names of all that is there, foreign things too, in any order. */
  list(): Promise<string[]>;
  /**
   * Resolves when the file is whole and survives the death of the machine. Until then it is not there.
   *
   * @param mayWrite - awaited when all but the last part is written: it rejects if the program may
   *   write no more
   */
  write(name: string, parts: readonly Uint8Array[], mayWrite: () => Promise<void>): Promise<void>;
  /** @throws (rejects) NotACheckpoint: it is damaged, or foreign; another error: the store is out of reach */
  open(name: string): Promise<CheckpointSource>;
  remove(name: string): Promise<void>;
  /** Removes what writes that were cut off by a program's death have left. */
  removeUnfinished(): Promise<void>;
}

export interface CheckpointStore {
  /** Where the file of this name is, for messages and as the result of a save. */
  whereIs(name: string): string;
  /**
   * Opens the store, and closes it when `body` has ended. `body` may be begun again after the
   * connection to the store was lost.
   *
   * @throws (rejects) UnavailableError: the store is out of reach, or `body` has failed;
   *   FailedPreconditionError: that of `body`
   */
  use<T>(what: 'read' | 'written', body: (files: CheckpointFiles) => Promise<T>): Promise<T>;
}

/** Why a file is no whole checkpoint, or none of this program, for people. */
export class NotACheckpoint extends Error {}
