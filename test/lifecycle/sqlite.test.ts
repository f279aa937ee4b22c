/** `allstop/sqlite`: queries that end at a stop, and arguments that are refused. */
import { Coordinator } from 'allstop';
import { obey, type SqliteDatabase } from 'allstop/sqlite';
import { describe, expect, it } from 'vitest';
import { compiledBinary } from '../support/published-copy.ts';
import { runScript, saidOf } from '../support/run-script.ts';

const hasSqlite = await import('node:sqlite' as string).then(
  () => true,
  () => false,
);

describe.skipIf(!hasSqlite)('a connection of node:sqlite that obeys a coordinator', () => {
  it('ends its queries at a stop, a deadline and none, as the script says', async () => {
    const ended = await runScript('sqlite', [compiledBinary]);
    expect(ended).toMatchObject({ code: 0, signal: null });
    expect(saidOf(ended, 'blocked')).toMatchObject({ said: ['asks', 'interrupted'] });
    expect(saidOf(ended, 'short')).toMatchObject({
      ran: 'ran',
      stopped: 'interrupted',
      rollback: 'ran',
      noRollbacks: Array(3).fill('interrupted'),
      replaced: 'ran',
      ended: 'ran',
      cleared: 'ran',
    });
    expect(saidOf(ended, 'deadline')).toMatchObject({
      deadline: 'interrupted',
      parent: false,
      reopened: 'ran',
      again: 'interrupted',
    });
    expect(saidOf(ended, 'reader')).toMatchObject({ first: 1, stopped: 'interrupted' });
    expect(saidOf(ended, 'function')).toMatchObject({ free: 'ran' });
    expect(saidOf(ended, 'extension')).toMatchObject({
      alone: expect.stringMatching(/^error during initialization/),
    });
    expect(saidOf(ended, 'refused')).toMatchObject({ code: 'ERR_ALLSTOP_FAILED_PRECONDITION' });
  });
});

describe('obey', () => {
  const coord = new Coordinator();
  const calls: string[] = [];
  const db: SqliteDatabase = {
    loadExtension(path) {
      calls.push(path);
      throw new Error('not authorized');
    },
  };

  it.each([
    [[undefined, coord], 'ERR_INVALID_ARG_TYPE', /"db" argument must be a database/],
    [[{}, coord], 'ERR_INVALID_ARG_TYPE', /"db" argument must be a database/],
    [[db, {}], 'ERR_INVALID_ARG_TYPE', /"coord" argument must be an instance of Coordinator/],
    [[db, coord, { everySteps: 0 }], 'ERR_OUT_OF_RANGE', /options\.everySteps/],
    [[db, coord, { everySteps: 1.5 }], 'ERR_OUT_OF_RANGE', /options\.everySteps/],
    [[db, coord, { steps: 1 }], 'ERR_INVALID_ARG_VALUE', /steps/],
  ])('refuses wrong arguments before it touches the database: %#', (args, code, message) => {
    const call = () => (obey as (...args: unknown[]) => void)(...args);
    expect(call).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    );
    expect(calls).toEqual([]);
  });

  it('says what a database that loads no extension needs', () => {
    const call = () => obey(db, coord);
    expect(call).toThrow(/not authorized.*allowExtension: true/);
    expect(call).toThrow(expect.objectContaining({ code: 'ERR_ALLSTOP_FAILED_PRECONDITION' }));
    obey(db, null); // a database that obeys nothing has nothing to end
    const pretending: SqliteDatabase = { loadExtension: () => undefined };
    expect(() => obey(pretending, coord)).toThrow(/SQLite has not called it/);
  });
});
