export { type ObeyOptions, obey, type SqliteDatabase } from './obey.ts';
