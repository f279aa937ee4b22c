/** The public class Checkpoint: variables and the program's state, saved in files or in JetStream. */

import {
  checkFunction,
  checkInteger,
  checkOptions,
  checkString,
  invalidType,
} from '../base/arguments.ts';
import { messageOf } from '../base/thrown-value.ts';
import {
  FailedPreconditionError,
  InvalidArgumentError,
  UnavailableError,
} from '../errors/errors.ts';
import { packCheckpoint, readCheckpoint } from './variables/checkpoint-file.ts';
import { CheckpointFolder, type CheckpointStore } from './variables/checkpoint-store.ts';
import { type VariableStore, variablesOf } from './variables/variable-store.ts';
import { dataCloneError } from './worker/protocol.ts';
import { packValue, unpackValue } from './worker/value.ts';

export type CheckpointOptions = (
  | {
      /** The folder of the files, which is made if it is missing. For one program at a time. */
      directory: string;
      bucket?: undefined;
    }
  | {
      /**
       * The object store in JetStream, of a cluster with a NatsStrategy: 1 to 64 letters, digits, '-'
       * and '_'. It is made if it is missing. For one program at a time.
       */
      bucket: string;
      directory?: undefined;
    }
) & {
  /** How many saves stay, the newest (5). */
  keep?: number | undefined;
  /** Gives the program's own state for a save: anything that `structuredClone` takes. */
  state?: (() => unknown) | undefined;
  /**
   * Takes the state of the checkpoint that is restored, before its variables are assigned. If it
   * throws, no variable has changed. Not called for a checkpoint without a state.
   */
  load?: ((state: unknown) => void) | undefined;
};

const OPTIONS = [
  'directory',
  'bucket',
  'keep',
  'state',
  'load',
] satisfies (keyof CheckpointOptions)[];
const BUCKET = /^[\w-]{1,64}$/;
const KEEP = 5;

/** checkpoint-NUMBER-STEP: the number says the order of saves. */
const FILE = /^checkpoint-(\d{10,})-(\d+)$/;

function packState(state: unknown): Uint8Array {
  try {
    return packValue(state);
  } catch (error) {
    throw dataCloneError(error);
  }
}

function skipped(path: string, why: string): void {
  process.emitWarning(`The checkpoint ${path} is skipped: ${why}`, {
    type: 'CheckpointWarning',
    code: 'ALLSTOP_CHECKPOINT',
  });
}

type Save = { name: string; number: number };

/**
 * Saves the variables of a cluster, and what `state()` gives, and restores them when the program
 * comes back. TensorFlow's Checkpoint and CheckpointManager.
 *
 * A save is a consistent cut: the values of all variables at one moment. As a file it is written to a
 * temporary one, then to the disk, and gets its name at last; in a bucket it is there when all of it
 * is. So a program that is killed at any moment finds its last finished save whole.
 */
export class Checkpoint {
  readonly #variables: VariableStore;
  readonly #store: CheckpointStore;
  readonly #keep: number;
  readonly #state: (() => unknown) | undefined;
  readonly #load: ((state: unknown) => void) | undefined;
  /** Settles when the last save has ended: saves follow each other. */
  #saved: Promise<unknown> = Promise.resolve();

  /**
   * @param cluster - a ClusterCoordinator
   * @throws TypeError, RangeError, InvalidArgumentError; FailedPreconditionError: a bucket, and the
   *   cluster has no NatsStrategy
   */
  constructor(cluster: object, options: CheckpointOptions) {
    const variables = variablesOf.get(Object(cluster));
    if (variables === undefined) {
      throw invalidType('cluster', 'an instance of ClusterCoordinator', cluster);
    }
    if (options === undefined) throw invalidType('options', 'of type object', options);
    const given = checkOptions('options', options, OPTIONS);
    const { directory, bucket, keep = KEEP, state, load } = given;
    if (directory !== undefined && bucket !== undefined) {
      throw new InvalidArgumentError('options has both a directory and a bucket: leave one out');
    }
    if (bucket === undefined) checkString('options.directory', directory);
    else checkString('options.bucket', bucket);
    if (directory === '') throw new InvalidArgumentError('options.directory is empty');
    if (bucket !== undefined && !BUCKET.test(bucket)) {
      throw new InvalidArgumentError(
        `The name of a bucket must be 1 to 64 letters, digits, '-' and '_'. Received '${bucket}'`,
      );
    }
    checkInteger('options.keep', keep, 1, Number.MAX_SAFE_INTEGER);
    if (state !== undefined) checkFunction('options.state', state);
    if (load !== undefined) checkFunction('options.load', load);
    this.#variables = variables;
    this.#store = storeOf(variables, directory, bucket);
    this.#keep = keep;
    this.#state = state as (() => unknown) | undefined;
    this.#load = load as ((state: unknown) => void) | undefined;
  }

  /**
   * Saves all variables and the state, while functions go on. Saves of one Checkpoint follow each
   * other; each takes its values when the one before has ended.
   *
   * @param step - a number of the program's, an integer from 0; `restoreLatest` gives it back. It does
   *   not say the order.
   * @returns the path of the file; of an object BUCKET/NAME
   * @throws (rejects) TypeError, RangeError: `step`; the error of `state()`; DataCloneError: the
   *   state cannot be cloned; UnavailableError: the save could not be written, and earlier ones are as
   *   they were
   */
  async save(step: number): Promise<string> {
    checkInteger('step', step, 0, Number.MAX_SAFE_INTEGER);
    const saved = this.#saved.then(() => this.#save(step));
    this.#saved = saved.catch(() => {});
    return await saved;
  }

  /**
   * Restores the newest checkpoint that is whole and has all variables of the program, which has
   * to make them before. All or nothing: the variables change at one moment. (One that `load` makes keeps its value.) A file that is damaged,
   * or is of another program, is skipped with a warning (`process.emitWarning`, code
   * `ALLSTOP_CHECKPOINT`) that names it.
   *
   * @returns its step; undefined if there is none
   * @throws (rejects) the error of `load`; UnavailableError: the folder or the bucket cannot be read
   */
  async restoreLatest(): Promise<number | undefined> {
    await this.#saved;
    const saves = await this.#orUnavailable('read', () => this.#saves());
    for (const { name } of saves.toReversed()) {
      const path = this.#store.pathOf(name);
      const found = await this.#read(name);
      if (found === undefined) continue;
      const { step, values, state } = found;
      const made = this.#variables.definitions.find(({ name: own }) => !values.has(own));
      if (made !== undefined) {
        skipped(path, `it lacks the variable '${made.name}'`); // made while the file was read
        continue;
      }
      if (state !== undefined) this.#load?.(state.value);
      await this.#variables.restore(values);
      return step;
    }
    return undefined;
  }

  async #read(name: string) {
    try {
      const { state, ...found } = await this.#store.read(name, (source) =>
        readCheckpoint(source, this.#variables.definitions),
      );
      return { ...found, state: state === undefined ? undefined : { value: unpackValue(state) } };
    } catch (error) {
      skipped(this.#store.pathOf(name), messageOf(error));
      return undefined;
    }
  }

  async #save(step: number): Promise<string> {
    const state = this.#state === undefined ? undefined : packState(this.#state());
    const values = await this.#variables.snapshot();
    return await this.#orUnavailable('written', async () => {
      const saves = await this.#saves();
      const number = (saves.at(-1)?.number ?? 0) + 1;
      const name = `checkpoint-${String(number).padStart(10, '0')}-${step}`;
      await this.#store.write(name, await packCheckpoint({ step, values, state }));
      const old = saves.slice(0, Math.max(0, saves.length + 1 - this.#keep));
      for (const each of old) await this.#store.remove(each.name);
      return this.#store.pathOf(name);
    });
  }

  /** The finished saves, the oldest first. */
  async #saves(): Promise<Save[]> {
    return (await this.#store.names())
      .flatMap((name) => {
        const found = FILE.exec(name);
        return found === null ? [] : [{ name, number: Number(found[1]) }];
      })
      .toSorted((one, other) => one.number - other.number);
  }

  async #orUnavailable<T>(what: 'read' | 'written', body: () => Promise<T>): Promise<T> {
    try {
      return await body();
    } catch (error) {
      throw new UnavailableError(
        `The checkpoints ${this.#store.where} could not be ${what}: ${messageOf(error)}`,
        { cause: error },
      );
    }
  }
}

function storeOf(
  variables: VariableStore,
  directory: string | undefined,
  bucket: string | undefined,
): CheckpointStore {
  if (bucket === undefined) return new CheckpointFolder(directory as string);
  if (variables.bucket !== undefined) return variables.bucket(bucket);
  throw new FailedPreconditionError(
    'options.bucket needs a cluster with a NatsStrategy: use options.directory',
  );
}
