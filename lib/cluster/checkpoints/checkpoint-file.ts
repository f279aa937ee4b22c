/**
 * A checkpoint as a file of parts with checksums.
 *
 *   MAGIC, 16 bytes; the length of the header, 4 bytes, little-endian; the header, JSON; the
 *   SHA-256 of all this, 32 bytes; then the parts that the header lists, one after the other.
 *
 * Each part has a SHA-256 of its own in the header. A file is whole if all of them match and the
 * file ends with its last part. The header has the file's name: a file that was renamed is not a
 * checkpoint.
 */

import { type FileHandle, open, readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { builtin } from '../../base/builtins.ts';
import { makeFolder, replaceFile, writeSynced } from '../../base/synced-files.ts';
import { codeOf, messageOf } from '../../base/thrown-value.ts';
import { FailedPreconditionError, UnavailableError } from '../../errors/errors.ts';
import { type NativeArray, VARIABLE_TYPES } from '../../native/binding.ts';
import { bytesOf, type Definition, emptyArray, type Values } from '../variables/variable.ts';

// The seam between Checkpoint and the places where checkpoints are kept.

/** The bytes of one checkpoint. */
export interface CheckpointSource {
  readonly size: number;
  /**
   * Fills `into` with the bytes that begin at `at`.
   *
   * @throws (rejects) NotACheckpoint: there are fewer, or they cannot be read
   */
  read(into: Uint8Array, at: number): Promise<void>;
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
  /**
   * Gives a file to `body`.
   *
   * @throws (rejects) NotACheckpoint: it is damaged, or foreign; the error of `body`; another error:
   *   the store is out of reach
   */
  read<T>(name: string, body: (source: CheckpointSource) => Promise<T>): Promise<T>;
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

const MAGIC: Buffer = Buffer.from('allstop-ckpt-1\n\n', 'latin1');
const HASH_BYTES = 32;
const PREFIX_BYTES: number = MAGIC.length + 4;
/** No checkpoint has a longer header: it lists a hundred bytes or so for each variable. */
const MAX_HEADER_BYTES = 64 * 1024 * 1024;

export type Snapshot = {
  step: number;
  values: Values;
  /** The program's own state, packed; undefined if it keeps none. */
  state: Uint8Array | undefined;
};

type Part = { name: string; type: string; length: number; bytes: number; sha256: string };
type Header = { name: string; step: number; variables: Part[]; state: Part | null };

async function sha256(bytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(
    await builtin('node:crypto').webcrypto.subtle.digest(
      'SHA-256',
      bytes as Uint8Array<ArrayBuffer>,
    ),
  );
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The parts of the file of this name, one after the other. */
export async function checkpointParts(name: string, snapshot: Snapshot): Promise<Uint8Array[]> {
  const { step, values, state } = snapshot;
  const parts: Uint8Array[] = [];
  const add = async (part: Omit<Part, 'bytes' | 'sha256'>, bytes: Uint8Array): Promise<Part> => {
    parts.push(bytes);
    return { ...part, bytes: bytes.byteLength, sha256: hex(await sha256(bytes)) };
  };
  const header: Header = { name, step, variables: [], state: null };
  for (const [variable, { definition, value }] of values) {
    const { type, length } = definition;
    const part = { name: variable, type: VARIABLE_TYPES[type] ?? 'number', length };
    header.variables.push(await add(part, bytesOf(value)));
  }
  if (state !== undefined) {
    header.state = await add({ name: 'state', type: 'state', length: state.byteLength }, state);
  }
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(json.length);
  const head = Buffer.concat([MAGIC, length, json]);
  return [head, await sha256(head), ...parts];
}

/**
 * @param name - what the file is named now
 * @param definitions - what the checkpoint has to have; it may have more
 * @throws (rejects) NotACheckpoint; the error of `file`
 */
export async function readCheckpoint(
  file: CheckpointSource,
  name: string,
  definitions: readonly Definition[],
): Promise<Snapshot> {
  const { header, end } = await readHeader(file);
  // A name says the order of saves: another one would make an old save the latest.
  if (header.name !== name) throw new NotACheckpoint(`it was saved as ${header.name}`);
  const parts = [...header.variables, ...(header.state === null ? [] : [header.state])];
  const whole = parts.reduce((sum, { bytes }) => sum + bytes, end);
  if (whole !== file.size) throw new NotACheckpoint(`it has ${file.size} bytes, not ${whole}`);
  const wanted = new Map(definitions.map((definition) => [definition.name, definition]));
  const values: Values = new Map();
  let state: Uint8Array | undefined;
  let at = end;
  for (const part of parts) {
    const definition = part === header.state ? undefined : wanted.get(part.name);
    const value = definition === undefined ? undefined : arrayFor(definition, part);
    const bytes = value === undefined ? Buffer.alloc(part.bytes) : bytesOf(value);
    await file.read(bytes, at);
    if (hex(await sha256(bytes)) !== part.sha256) {
      throw new NotACheckpoint(`the checksum of '${part.name}' does not match`);
    }
    if (definition !== undefined && value !== undefined) {
      values.set(part.name, { definition, value });
    }
    if (part === header.state) state = bytes;
    at += part.bytes;
  }
  for (const variable of wanted.keys()) {
    if (!values.has(variable)) throw new NotACheckpoint(`it lacks the variable '${variable}'`);
  }
  return { step: header.step, values, state };
}

function arrayFor(definition: Definition, { name, type, length }: Part): NativeArray {
  const known = VARIABLE_TYPES[definition.type];
  if (type !== known || length !== definition.length) {
    throw new NotACheckpoint(
      `its variable '${name}' is ${type} (${length}), the program's is ${known} (${definition.length})`,
    );
  }
  return emptyArray(definition);
}

async function readHeader(file: CheckpointSource): Promise<{ header: Header; end: number }> {
  const { size } = file;
  const prefix = Buffer.alloc(PREFIX_BYTES);
  if (size < PREFIX_BYTES) throw new NotACheckpoint(`it has only ${size} bytes`);
  await file.read(prefix, 0);
  if (!prefix.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw new NotACheckpoint('it does not begin as a checkpoint of this version');
  }
  const length = prefix.readUInt32LE(MAGIC.length);
  const end = PREFIX_BYTES + length + HASH_BYTES;
  if (length > MAX_HEADER_BYTES || end > size) throw new NotACheckpoint('its header is cut off');
  const rest = Buffer.alloc(length + HASH_BYTES);
  await file.read(rest, PREFIX_BYTES);
  const json = rest.subarray(0, length);
  const hash = await sha256(Buffer.concat([prefix, json]));
  if (!rest.subarray(length).equals(hash)) {
    throw new NotACheckpoint('the checksum of its header does not match');
  }
  try {
    return { header: JSON.parse(json.toString()), end };
  } catch (error) {
    throw new NotACheckpoint(`its header cannot be read: ${messageOf(error)}`);
  }
}

// Checkpoints as the files of a folder.

const UNFINISHED = /^checkpoint-\d{10,}-\d+\.unfinished$/;

/** Errors of this program or machine, which say nothing about a file. */
const OURS: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);

async function ofFile<T>(body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    if (error instanceof NotACheckpoint || OURS.has(codeOf(error))) {
      throw error;
    }
    throw new NotACheckpoint(messageOf(error), { cause: error });
  }
}

export class DirectoryStore implements CheckpointStore, CheckpointFiles {
  readonly #path: string;

  constructor(path: string) {
    this.#path = resolve(path); // the program may change its working directory
  }

  whereIs(name: string): string {
    return join(this.#path, name);
  }

  async use<T>(what: 'read' | 'written', body: (files: CheckpointFiles) => Promise<T>): Promise<T> {
    try {
      if (what === 'written') await makeFolder(this.#path);
      return await body(this);
    } catch (error) {
      if (error instanceof FailedPreconditionError) throw error;
      throw new UnavailableError(
        `The checkpoints in ${this.#path} could not be ${what}: ${messageOf(error)}`,
        { cause: error },
      );
    }
  }

  async list(): Promise<string[]> {
    return await readdir(this.#path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
  }

  async write(
    name: string,
    parts: readonly Uint8Array[],
    mayWrite: () => Promise<void>,
  ): Promise<void> {
    const path = this.whereIs(name);
    await replaceFile(path, `${path}.unfinished`, async (unfinished) => {
      await writeSynced(unfinished, parts);
      await mayWrite();
    });
  }

  async read<T>(name: string, body: (source: CheckpointSource) => Promise<T>): Promise<T> {
    const file = await ofFile(() => open(this.whereIs(name), 'r'));
    try {
      const { size } = await ofFile(() => file.stat());
      return await body({ size, read: (into, at) => ofFile(() => readFully(file, into, at)) });
    } finally {
      await file.close();
    }
  }

  async remove(name: string): Promise<void> {
    await rm(this.whereIs(name), { force: true });
  }

  async removeUnfinished(): Promise<void> {
    for (const name of await this.list()) if (UNFINISHED.test(name)) await this.remove(name);
  }
}

async function readFully(file: FileHandle, into: Uint8Array, at: number): Promise<void> {
  let done = 0;
  while (done < into.byteLength) {
    const { bytesRead } = await file.read(into, done, into.byteLength - done, at + done);
    if (bytesRead === 0) throw new NotACheckpoint('it was cut off while it was read');
    done += bytesRead;
  }
}
