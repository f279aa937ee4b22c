/**
 * SQLite queries that end at a stop or a deadline.
 *
 * @module allstop/sqlite
 */

export * from '../errors/public-errors.ts';
export { type ObeyOptions, obey, type SqliteDatabase } from './obey.ts';
