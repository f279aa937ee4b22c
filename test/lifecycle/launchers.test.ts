// Programs that are started as people start them, in a terminal: a launcher gets the Ctrl-C of the
// terminal as the program does, and often passes it on.

import { rmSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { isThere, LAUNCHERS, Launched, makeProject } from '../support/launchers.ts';

/** Launchers that end at SIGTERM, and tell the program nothing. */
const ENDS_ALONE = new Set(['npm start (dash)', 'npx', 'pnpm start']);
/** And those that tell it of the first one only. */
const TELLS_ONCE = new Set([...ENDS_ALONE, 'nodemon']);
const HOOK_MS = 1_000;
/** So long that a program whose hook has it does not end by itself. */
const LONG_HOOK_MS = 60_000;
const WITHIN_MS = 30_000;

let project: string;
function inProject(options?: { fetch: boolean }): void {
  beforeAll(() => {
    project = makeProject(options);
  });
  afterAll(() => rmSync(project, { recursive: true }));
}

async function launch(name: string, hookMs: number): Promise<Launched> {
  const program = new Launched(project, LAUNCHERS[name] ?? [], hookMs);
  onTestFinished(() => program.close());
  await program.tells('ready');
  return program;
}

/** By launcher and what was done: how many programs of all have ended as they should. */
const table: Record<string, Record<string, string>> = {};

/** Does `once` `count` times. */
async function times(
  count: number,
  [name, what]: [string, string],
  once: () => Promise<void>,
): Promise<void> {
  for (let done = 0; done <= count; done++) {
    (table[name] ??= {})[what] = `${done} of ${count}`;
    if (done < count) await once();
  }
}

/** Starts the program `count` times, and checks that its hook has ended. */
async function stopsInOrder(
  name: string,
  count: number,
  what: string,
  stop: (program: Launched) => unknown,
): Promise<void> {
  await times(count, [name, what], async () => {
    const program = await launch(name, HOOK_MS);
    await stop(program);
    expect(await program.ends(WITHIN_MS), program.shown).toBe(true);
    expect(program.told).toEqual(['ready', 'closing', 'closed']);
  });
}

/** Starts the program 20 times, and checks that what is done twice ends it in its hook. */
async function endsInTheHook(
  name: string,
  what: string,
  stop: (program: Launched) => unknown,
): Promise<void> {
  await times(20, [name, what], async () => {
    const program = await launch(name, LONG_HOOK_MS);
    await stop(program);
    await program.tells('closing');
    await setTimeout(1_000); // a person
    await stop(program);
    expect(await program.ends(WITHIN_MS), program.shown).toBe(true);
    expect(program.told).toEqual(['ready', 'closing']);
  });
}

const pressCtrlC = (program: Launched): void => program.pressCtrlC();
const sendSigterm = async (program: Launched): Promise<void> => program.signalLauncher('SIGTERM');

describe.skipIf(process.platform !== 'linux')('one Ctrl-C is one stop', () => {
  inProject();
  it.each(['npm start (dash)', 'a slow launcher'])('of %s', async (name) =>
    stopsInOrder(name, 1, 'Ctrl-C', pressCtrlC),
  );
});

describe.skipIf(process.platform !== 'linux').each(Object.keys(LAUNCHERS).filter(isThere))(
  'under %s',
  { tags: 'long', timeout: 900_000 },
  (name) => {
    inProject({ fetch: true });
    afterAll(() => console.table({ [name]: table[name] }));

    it('one Ctrl-C is one stop', async () => stopsInOrder(name, 20, 'Ctrl-C', pressCtrlC));

    it('a second one, a second later, ends it', async () =>
      endsInTheHook(name, 'Ctrl-C twice', pressCtrlC));

    it.skipIf(ENDS_ALONE.has(name))('SIGTERM to the launcher is one stop', async () =>
      stopsInOrder(name, 20, 'SIGTERM', sendSigterm),
    );

    it.skipIf(TELLS_ONCE.has(name))('a second one, a second later, ends it, too', async () =>
      endsInTheHook(name, 'SIGTERM twice', sendSigterm),
    );
  },
);
