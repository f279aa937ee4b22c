/** The public class Checkpoint: variables and the program's state, saved in files. */

import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  checkFunction,
  checkInteger,
  checkOptions,
  checkString,
  invalidType,
} from '../base/arguments.ts';
import { replaceFile } from '../base/synced-files.ts';
import { messageOf } from '../base/thrown-value.ts';
import { InvalidArgumentError, UnavailableError } from '../errors/errors.ts';
import { readCheckpoint, writeCheckpoint } from './variables/checkpoint-file.ts';
import { type VariableStore, variablesOf } from './variables/variable-store.ts';
import { dataCloneError } from './worker/protocol.ts';
import { packValue, unpackValue } from './worker/value.ts';

export type CheckpointOptions = {
  /** The folder of the files, which is made if it is missing. For one program at a time. */
  directory: string;
  /** How many files stay, the newest (5). */
  keep?: number | undefined;
  /** Gives the program's own state for a save: anything that `structuredClone` takes. */
  state?: (() => unknown) | undefined;
  /**
   * Takes the state of the checkpoint that is restored, before its variables are assigned. If it
   * throws, no variable has changed. Not called for a checkpoint without a state.
   */
  load?: ((state: unknown) => void) | undefined;
};

const OPTIONS = ['directory', 'keep', 'state', 'load'] satisfies (keyof CheckpointOptions)[];
const KEEP = 5;

/** checkpoint-NUMBER-STEP: the number says the order of saves. */
const FILE = /^checkpoint-(\d{10,})-(\d+)$/;
const UNFINISHED = /^checkpoint-\d{10,}-\d+\.unfinished$/;

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

type File = { name: string; number: number };

/**
 * Saves the variables of a cluster, and what `state()` gives, and restores them when the program
 * comes back. TensorFlow's Checkpoint and CheckpointManager.
 *
 * A save is a consistent cut: the values of all variables at one moment. It is written to a
 * temporary file, then to the disk, and gets its name at last: a program that is killed at any
 * moment finds its last finished save whole.
 */
export class Checkpoint {
  readonly #variables: VariableStore;
  readonly #directory: string;
  readonly #keep: number;
  readonly #state: (() => unknown) | undefined;
  readonly #load: ((state: unknown) => void) | undefined;
  /** Settles when the last save has ended: saves follow each other. */
  #saved: Promise<unknown> = Promise.resolve();

  /**
   * @param cluster - a ClusterCoordinator
   * @throws TypeError, RangeError, InvalidArgumentError
   */
  constructor(cluster: object, options: CheckpointOptions) {
    const variables = variablesOf.get(Object(cluster));
    if (variables === undefined) {
      throw invalidType('cluster', 'an instance of ClusterCoordinator', cluster);
    }
    if (options === undefined) throw invalidType('options', 'of type object', options);
    const given = checkOptions('options', options, OPTIONS);
    const { directory, keep = KEEP, state, load } = given;
    checkString('options.directory', directory);
    if (directory === '') throw new InvalidArgumentError('options.directory is empty');
    checkInteger('options.keep', keep, 1, Number.MAX_SAFE_INTEGER);
    if (state !== undefined) checkFunction('options.state', state);
    if (load !== undefined) checkFunction('options.load', load);
    this.#variables = variables;
    this.#directory = directory;
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
   * @returns the path of the file
   * @throws (rejects) TypeError, RangeError: `step`; the error of `state()`; DataCloneError: the
   *   state cannot be cloned; UnavailableError: the file could not be written, and the files of
   *   earlier saves are as they were
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
   * @throws (rejects) the error of `load`; UnavailableError: the folder cannot be read
   */
  async restoreLatest(): Promise<number | undefined> {
    await this.#saved;
    const files = await this.#orUnavailable('read', () => this.#files());
    for (const { name } of files.toReversed()) {
      const path = join(this.#directory, name);
      const found = await this.#read(path);
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

  async #read(path: string) {
    try {
      const { state, ...found } = await readCheckpoint(path, this.#variables.definitions);
      return { ...found, state: state === undefined ? undefined : { value: unpackValue(state) } };
    } catch (error) {
      skipped(path, messageOf(error));
      return undefined;
    }
  }

  async #save(step: number): Promise<string> {
    const state = this.#state === undefined ? undefined : packState(this.#state());
    const values = await this.#variables.snapshot();
    return await this.#orUnavailable('written', async () => {
      await mkdir(this.#directory, { recursive: true });
      await this.#removeUnfinished();
      const files = await this.#files();
      const number = (files.at(-1)?.number ?? 0) + 1;
      const path = join(this.#directory, `checkpoint-${String(number).padStart(10, '0')}-${step}`);
      await replaceFile(path, `${path}.unfinished`, (unfinished) =>
        writeCheckpoint(unfinished, { step, values, state }),
      );
      const old = files.slice(0, Math.max(0, files.length + 1 - this.#keep));
      for (const { name } of old) await rm(join(this.#directory, name), { force: true });
      return path;
    });
  }

  /** The files of finished saves, the oldest first. */
  async #files(): Promise<File[]> {
    const names = await readdir(this.#directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    return names
      .flatMap((name) => {
        const found = FILE.exec(name);
        return found === null ? [] : [{ name, number: Number(found[1]) }];
      })
      .toSorted((one, other) => one.number - other.number);
  }

  /** Removes what saves of a killed program have left. */
  async #removeUnfinished(): Promise<void> {
    for (const name of await readdir(this.#directory)) {
      if (UNFINISHED.test(name)) await rm(join(this.#directory, name), { force: true });
    }
  }

  async #orUnavailable<T>(what: 'read' | 'written', body: () => Promise<T>): Promise<T> {
    try {
      return await body();
    } catch (error) {
      throw new UnavailableError(
        `The checkpoints in ${this.#directory} could not be ${what}: ${messageOf(error)}`,
        { cause: error },
      );
    }
  }
}
