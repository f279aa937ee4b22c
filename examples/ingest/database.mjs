// The database, by better-sqlite3 if it is installed, else by node:sqlite (Node 22.13 and later).
// What this program calls is the same in both.
const { default: Database } = await import('better-sqlite3').catch(async () => {
  const { DatabaseSync } = await import('node:sqlite');
  return { default: DatabaseSync };
});

/** Opens it, and makes the tables if they are not there. */
export function openDatabase(path) {
  const db = new Database(path);
  db.exec(`
    PRAGMA busy_timeout = 5000;
    PRAGMA journal_mode = WAL;
    CREATE TABLE IF NOT EXISTS rows (name TEXT, value REAL);
    CREATE TABLE IF NOT EXISTS position (bytes INTEGER);
    INSERT INTO position SELECT 0 WHERE NOT EXISTS (SELECT * FROM position);
  `);
  return db;
}

/** How much of the file is in the table. */
export function positionIn(db) {
  return db.prepare('SELECT bytes FROM position').get().bytes;
}
