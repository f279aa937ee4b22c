/** The public class FileResults, and its store: a file for each result. */

import { access, constants, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { checkString } from '../../base/arguments.ts';
import { builtin } from '../../base/builtins.ts';
import { showAs } from '../../base/inspect.ts';
import { makeFolder, replaceFile, syncFolder, writeSynced } from '../../base/synced-files.ts';
import { codeOf, messageOf } from '../../base/thrown-value.ts';
import {
  FailedPreconditionError,
  InvalidArgumentError,
  UnavailableError,
} from '../../errors/errors.ts';
import type { KeptResults, KeptResultsHost, Results } from '../../pool/calls/calls.ts';
import { KeyedCalls, type ResultStore, Turns } from './keyed-calls.ts';

/**
 * Keeps the results of calls with a key in files of a folder, which is made when it is first used.
 * Programs of one machine may share it, one after the other or at once. Given to a ClusterCoordinator
 * as its option `results`; to several, if they are to share the results.
 *
 * A result is written to a temporary file, then to the disk, and gets its name at last: a program or
 * machine that dies at any moment leaves each result whole, or none. To forget results, delete files
 * or the folder.
 *
 * @example
 * ```js
 * import { ClusterCoordinator, FileResults, LocalStrategy } from 'allstop/cluster';
 *
 * const module = new URL('data:text/javascript,export const square = (x) => x * x');
 * const strategy = new LocalStrategy({ module, workers: 1 });
 * const cluster = new ClusterCoordinator(strategy, { results: new FileResults('results') });
 * console.log(await cluster.run('square', [7], { key: 'seven' })); // 49
 * console.log(await cluster.run('square', [7], { key: 'seven' })); // 49, and nothing runs
 * await cluster.close();
 * ```
 */
export class FileResults implements Results {
  /** The path of the folder, absolute. */
  readonly directory: string;

  static {
    showAs(FileResults.prototype, ({ directory }) => ({ facts: [directory] }));
  }

  /**
   * Reads and writes nothing.
   *
   * @param directory - the path of the folder; a relative one begins in the present working directory
   * @throws TypeError (`ERR_INVALID_ARG_TYPE`); InvalidArgumentError: it is empty
   */
  constructor(directory: string) {
    checkString('directory', directory);
    if (directory === '') throw new InvalidArgumentError('The directory of FileResults is empty');
    this.directory = resolve(directory);
  }

  /** @internal */
  open(definition: string, host: KeptResultsHost): KeptResults {
    return new KeyedCalls(fileStore(this.directory), definition, host);
  }
}

/** Files are open while they are read and written, and a process may have few (`ulimit -n`). */
const FILES_AT_ONCE = 64;
/** The subfolder of files that are being written. */
const UNFINISHED = 'unfinished';
/** No write takes so long: an older unfinished file was left by a program that was killed. */
const OLD_MS = 60 * 60 * 1_000;

function fileStore(directory: string): ResultStore {
  const unfinishedFolder = join(directory, UNFINISHED);
  const turns = new Turns(FILES_AT_ONCE);
  /** A folder of 256, so that none has too many files. */
  const folderOf = (name: string): string => join(directory, name.slice(0, 2));
  const whereIs = (name: string): string => join(folderOf(name), name);

  const prepare = async (): Promise<void> => {
    await makeFolder(unfinishedFolder);
    // Better now than when functions have run whose results cannot be written.
    await access(unfinishedFolder, constants.R_OK | constants.W_OK | constants.X_OK);
    for (const name of await readdir(unfinishedFolder)) {
      const path = join(unfinishedFolder, name);
      if (await isLeftOver(name, path)) await rm(path, { force: true });
    }
  };

  /** The folder is there, and what killed programs have left in it is gone. */
  let ready: Promise<void> | undefined;
  const begin = async (): Promise<void> => {
    ready ??= prepare();
    try {
      await ready;
    } catch (error) {
      ready = undefined;
      throw unavailable(`The folder of results ${directory} cannot be used`, error);
    }
  };

  return {
    whereIs,
    get: (name) =>
      turns.take(async () => {
        const path = whereIs(name);
        await begin();
        try {
          return await readFile(path);
        } catch (error) {
          if (codeOf(error) === 'ENOENT') return undefined;
          throw unavailable(`The result in the file ${path} could not be read`, error);
        }
      }),
    put: (name, record, mayWrite) =>
      turns.take(async () => {
        const path = whereIs(name);
        try {
          await makeFolder(unfinishedFolder);
          if (await makeFolder(folderOf(name))) await syncFolder(directory);
          const own = `${hostHash()}-${process.pid}-${builtin('node:crypto').randomUUID()}`;
          await replaceFile(path, join(unfinishedFolder, own), async (unfinished) => {
            await writeSynced(unfinished, [record]);
            await mayWrite();
          });
        } catch (error) {
          if (error instanceof FailedPreconditionError) throw error; // of `mayWrite`
          throw unavailable(`The result could not be written to the file ${path}`, error);
        }
      }),
    close: async () => {},
  };
}

/** This host, in the names of the files that are being written: HOST-PID-UUID. */
const hostHash = (): string =>
  builtin('node:crypto')
    .createHash('sha256')
    .update(builtin('node:os').hostname())
    .digest('hex')
    .slice(0, 12);
const NAME = /^([0-9a-f]{12})-(\d+)-[0-9a-f-]{36}$/;

/** Whether the process that was writing a file there is gone. False also for files of others. */
async function isLeftOver(name: string, path: string): Promise<boolean> {
  const found = NAME.exec(name);
  if (found === null) return false;
  const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
  if (mtimeMs < Date.now() - OLD_MS) return true;
  const [, host, pid] = found;
  if (host !== hostHash()) return false;
  // In a container a program has the same pid each time.
  if (Number(pid) === process.pid) return mtimeMs < Date.now() - process.uptime() * 1_000;
  return !isAlive(Number(pid));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ESRCH';
  }
}

const unavailable = (what: string, cause: unknown): UnavailableError =>
  new UnavailableError(`${what}: ${messageOf(cause)}`, { cause });
