/** Queries of SQLite that end at a stop. */

import { checkOptions, integerFrom, invalidType } from '../base/arguments.ts';
import { fieldOf, messageOf } from '../base/thrown-value.ts';
import { checkCoordinator } from '../coordinator/attachment.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';
import { FailedPreconditionError } from '../errors/errors.ts';
import type { SqliteConnection } from '../native/binding.ts';
import { binaryPath, binding } from '../native/native.ts';

/** A database of better-sqlite3 (`Database`) or of node:sqlite (`DatabaseSync`). */
export type SqliteDatabase = { loadExtension(path: string): unknown };

/** The options of `obey`. */
export type ObeyOptions = {
  /**
   * How many steps of SQLite's virtual machine are between two looks at the stop, an integer from
   * 1 on. Default: 1,000, some microseconds. It has no meaning for a build of SQLite without
   * progress handlers, such as that of better-sqlite3 12.
   */
  everySteps?: number | undefined;
};

const OPTIONS = { everySteps: integerFrom(1, 2 ** 31 - 1) };
const EVERY_STEPS = 1_000;

const connections = new WeakMap<SqliteDatabase, SqliteConnection>();

function refused(why: string, options?: ErrorOptions): FailedPreconditionError {
  return new FailedPreconditionError(
    `The database does not load allstop as an extension of SQLite: ${why}. A DatabaseSync of node:sqlite must be open and made with { allowExtension: true }`,
    options,
  );
}

function connect(db: SqliteDatabase): SqliteConnection {
  const connection = binding().connectSqlite();
  try {
    db.loadExtension(binaryPath());
  } catch (error) {
    throw refused(messageOf(error), { cause: error });
  }
  return connection;
}

/**
 * Has the queries of `db` end at a stop of `coord`: one that is running ends with the interrupt
 * error of its binding, and so does each that begins while the coordinator is stopped, but for
 * ROLLBACK. A stop by any thread counts, also while this thread is blocked in the query.
 *
 * A connection obeys one coordinator: a further call replaces it, and `null` ends it. So does the
 * end of the connection. After `clearStop()` queries run again. For the deadline of a query, obey
 * a child: `obey(db, coord.child())` with `child.stopAfter(ms)`.
 *
 * A query that is refused while another one of the connection is open, such as that of an
 * `iterate()`, interrupts that one, too, and all others until it has ended: also after `clearStop()`.
 *
 * It takes the connection's progress handler and trace callback, of which SQLite has one each.
 *
 * @example
 * ```js fragment
 * import { Coordinator } from 'allstop';
 * import { obey } from 'allstop/sqlite';
 * import Database from 'better-sqlite3';
 *
 * const db = new Database(':memory:');
 * const coord = new Coordinator();
 * obey(db, coord);
 * coord.stopAfter(100);
 * const numbers = 'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)';
 * try {
 *   db.prepare(`${numbers} SELECT sum(x) FROM n`).get(); // would never end
 * } catch (error) {
 *   console.log(error.message); // interrupted
 * }
 * ```
 * @throws FailedPreconditionError the database does not load extensions: one of node:sqlite needs
 *   `{ allowExtension: true }`
 * @throws TypeError, RangeError a wrong argument: nothing has changed then
 */
export function obey(db: SqliteDatabase, coord: Coordinator | null, options?: ObeyOptions): void {
  if (typeof fieldOf(db, 'loadExtension') !== 'function') {
    throw invalidType('db', 'a database of better-sqlite3 or node:sqlite', db);
  }
  const attachment = coord === null ? null : checkCoordinator('coord', coord);
  const { everySteps = EVERY_STEPS } = checkOptions('options', options, OPTIONS);
  const known = connections.get(db);
  const native = attachment?.native ?? null;
  // False: that connection was closed; the database may have another one by now.
  if (known !== undefined && binding().obeySqlite(known, native, everySteps)) return;
  if (native === null) return;
  const connection = connect(db);
  if (!binding().obeySqlite(connection, native, everySteps)) {
    throw refused('loadExtension() has returned, and SQLite has not called it');
  }
  connections.set(db, connection);
}
