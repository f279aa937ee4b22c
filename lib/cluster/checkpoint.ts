/** The public class Checkpoint: variables and the program's state, saved in files or objects. */

import {
  checkFunction,
  checkInteger,
  checkOptions,
  checkString,
  integerFrom,
  invalidType,
  unchecked,
} from '../base/arguments.ts';
import { showAs } from '../base/inspect.ts';
import { messageOf } from '../base/thrown-value.ts';
import { InvalidArgumentError } from '../errors/errors.ts';
import { refusedValue } from '../values/lost-values.ts';
import { packValue, unpackValue } from '../values/value.ts';
import {
  type CheckpointFiles,
  type CheckpointStore,
  checkpointParts,
  DirectoryStore,
  NotACheckpoint,
  readCheckpoint,
} from './checkpoints/checkpoint-file.ts';
import type { Strategy } from './cluster-strategy.ts';
import { checkBucket } from './results/keyed-calls.ts';
import { type Definition, type VariableStore, variablesOf } from './variables/variable.ts';

export type CheckpointPlace =
  | {
      /**
       * The folder of the files, which is made if it is missing; a relative path begins in the
       * working directory in which the Checkpoint is made. For one program at a time.
       */
      directory: string;
      /** Left out: the checkpoints are in files. */
      bucket?: undefined;
    }
  | {
      /**
       * The object store in JetStream, on the servers of the cluster's NatsStrategy, which is made
       * if it is missing: 1 to 64 letters, digits, '-' and '_'. For one program at a time. Needs the
       * package `@nats-io/obj`.
       */
      bucket: string;
      /** Left out: the checkpoints are in an object store. */
      directory?: undefined;
    };

/** The options of a Checkpoint. */
export type CheckpointOptions = CheckpointPlace & {
  /** How many checkpoints stay, the newest. Default: 5. */
  keep?: number | undefined;
  /**
   * Gives the program's own state for a save: anything that `structuredClone` takes. By default a
   * checkpoint has the variables alone.
   */
  state?: (() => unknown) | undefined;
  /**
   * Takes the state of the checkpoint that is restored, before its variables are assigned. If it
   * throws, no variable has changed. Not called for a checkpoint without a state. By default the
   * state is not read.
   */
  load?: ((state: unknown) => void) | undefined;
};

const OPTIONS = {
  directory: unchecked,
  bucket: unchecked,
  keep: integerFrom(1),
  state: checkFunction,
  load: checkFunction,
};
const KEEP = 5;

/** checkpoint-NUMBER-STEP: the number says the order of saves. */
const FILE = /^checkpoint-(\d{10,})-(\d+)$/;

function packState(state: unknown): Uint8Array {
  try {
    return packValue(state);
  } catch (error) {
    throw refusedValue(
      error,
      'The state of the checkpoint',
      { path: 'state', value: state },
      packValue,
    );
  }
}

/** @throws NotACheckpoint */
function unpackState(bytes: Uint8Array): unknown {
  try {
    return unpackValue(bytes);
  } catch (error) {
    throw new NotACheckpoint(messageOf(error), { cause: error });
  }
}

function skipped(path: string, why: string): void {
  process.emitWarning(`The checkpoint ${path} is skipped: ${why}`, {
    type: 'CheckpointWarning',
    code: 'ALLSTOP_CHECKPOINT',
  });
}

type File = { name: string; number: number };

/** The files of finished saves, the oldest first. */
async function filesOf(store: CheckpointFiles): Promise<File[]> {
  return (await store.list())
    .flatMap((name) => {
      const found = FILE.exec(name);
      return found === null ? [] : [{ name, number: Number(found[1]) }];
    })
    .toSorted((one, other) => one.number - other.number);
}

/** @throws TypeError, InvalidArgumentError */
function storeOf(strategy: Strategy, directory: unknown, bucket: unknown): CheckpointStore {
  if (directory !== undefined && bucket !== undefined) {
    throw new InvalidArgumentError('Only one of options.directory and options.bucket may be given');
  }
  if (bucket === undefined) {
    checkString('options.directory', directory);
    if (directory === '') throw new InvalidArgumentError('options.directory is empty');
    return new DirectoryStore(directory);
  }
  checkBucket(bucket);
  if (strategy.checkpoints === undefined) {
    throw new InvalidArgumentError(
      'options.bucket is for the cluster of a NatsStrategy, whose servers keep the checkpoints: with a LocalStrategy, give options.directory',
    );
  }
  return strategy.checkpoints(bucket);
}

/**
 * Saves the variables of a cluster, and what `state()` gives, and restores them when the program
 * comes back. TensorFlow's Checkpoint and CheckpointManager.
 *
 * A save is a consistent cut: the values of all variables at one moment. In a folder it is written
 * to a temporary file, then to the disk, and gets its name at last; in a bucket the object is there
 * once all its bytes are: a program that is killed at any moment finds its last finished save whole.
 *
 * @example
 * ```js
 * import { ClusterCoordinator, Checkpoint, LocalStrategy } from 'allstop/cluster';
 *
 * const module = new URL('data:text/javascript,export const square = (x) => x * x');
 * const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
 * const weights = await cluster.variable('weights', new Float64Array(3));
 * const checkpoint = new Checkpoint(cluster, { directory: 'checkpoints' });
 * const step = (await checkpoint.restoreLatest()) ?? 0; // 0 in the first run of this program
 * await weights.assignAdd(Float64Array.of(1, 1, 1));
 * await checkpoint.save(step + 1);
 * await cluster.close();
 * ```
 */
export class Checkpoint {
  readonly #variables: VariableStore;
  readonly #store: CheckpointStore;
  readonly #keep: number;
  readonly #state: (() => unknown) | undefined;
  readonly #load: ((state: unknown) => unknown) | undefined;
  /** Settles when the last save has ended: saves follow each other. */
  #saved: Promise<unknown> = Promise.resolve();

  static {
    showAs(Checkpoint.prototype, (checkpoint) => ({
      facts: [`keeps the newest ${checkpoint.#keep}`],
    }));
  }

  /**
   * @param cluster - a ClusterCoordinator
   * @throws TypeError, RangeError; InvalidArgumentError: two places, an invalid name, or `bucket` for
   *   a cluster without NATS
   */
  constructor(cluster: object, options: CheckpointOptions) {
    const variables = variablesOf.get(Object(cluster));
    if (variables === undefined) {
      throw invalidType('cluster', 'an instance of ClusterCoordinator', cluster);
    }
    if (options === undefined) throw invalidType('options', 'of type object', options);
    const given = checkOptions('options', options, OPTIONS);
    const { directory, bucket, keep = KEEP, state, load } = given;
    const { strategy } = cluster as { strategy: Strategy };
    const store = storeOf(strategy, directory, bucket);
    this.#variables = variables;
    this.#store = store;
    this.#keep = keep;
    this.#state = state as (() => unknown) | undefined;
    this.#load = load as ((state: unknown) => unknown) | undefined;
  }

  /**
   * Saves all variables and the state, while functions go on. Saves of one Checkpoint follow each
   * other; each takes its values when the one before has ended.
   *
   * @param step - a number of the program's, an integer from 0; `restoreLatest` gives it back. It does
   *   not say the order.
   * @returns where it is: the absolute path of the file, or BUCKET/NAME
   * @throws (rejects) TypeError, RangeError: `step`; the error of `state()`; DataCloneError: the
   *   state cannot be cloned; UnavailableError: it could not be written, and earlier
   *   saves are as they were; FailedPreconditionError: the cluster is closed, or another run has taken
   *   it over
   */
  async save(step: number): Promise<string> {
    checkInteger('step', step, 0, Number.MAX_SAFE_INTEGER);
    const saved = this.#saved.then(() => this.#save(step));
    this.#saved = saved.catch(() => {});
    return await saved;
  }

  /**
   * Restores the newest checkpoint that is whole and has all variables of the program, which has
   * to make them before. All or nothing: the variables change at one moment. (One
   * that `load` makes keeps its value.) A file that is damaged, or is of another program, is skipped with a warning (`process.emitWarning`, code
   * `ALLSTOP_CHECKPOINT`) that names it.
   *
   * @returns its step; undefined if there is none
   * @throws (rejects) the error of `load`; UnavailableError: the folder or the bucket
   *   cannot be read; FailedPreconditionError: the cluster is closed, or another run has taken it over
   */
  async restoreLatest(): Promise<number | undefined> {
    await this.#saved;
    await this.#variables.assertHeld?.(); // a run that stands by would restore what is not the last
    const { definitions } = this.#variables;
    // The newest is tried first. What was skipped is not tried again after a lost connection.
    const seen = new Set<string>();
    for (;;) {
      const found = await this.#store.use('read', (files) => this.#find(files, definitions, seen));
      if (found === undefined) return undefined;
      const { path, step, values, state } = found;
      const made = this.#variables.definitions.find(({ name }) => !values.has(name));
      if (made !== undefined) {
        skipped(path, `it lacks the variable '${made.name}'`); // made while the file was read
        continue;
      }
      if (state !== undefined) await this.#load?.(state.value);
      await this.#variables.restore(values);
      return step;
    }
  }

  /** The newest whole checkpoint that is not in `seen`, to which all are added that were tried. */
  async #find(files: CheckpointFiles, definitions: readonly Definition[], seen: Set<string>) {
    for (const { name } of (await filesOf(files)).toReversed()) {
      if (seen.has(name)) continue;
      const path = this.#store.whereIs(name);
      try {
        const { state: packed, ...found } = await files.read(name, (source) =>
          readCheckpoint(source, name, definitions),
        );
        seen.add(name);
        return { path, ...found, state: packed && { value: unpackState(packed) } };
      } catch (error) {
        if (!(error instanceof NotACheckpoint)) throw error;
        seen.add(name);
        skipped(path, error.message);
      }
    }
    return undefined;
  }

  async #save(step: number): Promise<string> {
    const state = this.#state === undefined ? undefined : packState(this.#state());
    const snapshot = { step, values: await this.#variables.snapshot(), state };
    return await this.#store.use('written', async (store) => {
      await store.removeUnfinished();
      const files = await filesOf(store);
      const number = (files.at(-1)?.number ?? 0) + 1;
      const name = `checkpoint-${String(number).padStart(10, '0')}-${step}`;
      const mayWrite = async (): Promise<void> => await this.#variables.assertHeld?.();
      await store.write(name, await checkpointParts(name, snapshot), mayWrite);
      const old = files.slice(0, Math.max(0, files.length + 1 - this.#keep));
      if (old.length > 0) await mayWrite();
      for (const file of old) await store.remove(file.name);
      return this.#store.whereIs(name);
    });
  }
}
