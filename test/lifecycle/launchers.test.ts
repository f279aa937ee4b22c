// Programs that are started as people start them, in a terminal: a launcher gets the Ctrl-C of the
// terminal as the program does, and often passes it on.

import { rmSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { isThere, LAUNCHERS, Launched, makeProject } from '../support/launchers.ts';

/** Launchers that end at SIGTERM, and tell the program nothing. */
const ENDS_ALONE = new Set(['npm start (dash)', 'npx', 'pnpm start']);
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

const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** Starts the program `count` times, and checks that its hook has ended. */
async function stopsInOrder(
  name: string,
  count: number,
  stop: (program: Launched) => unknown,
): Promise<void> {
  for (const time of times(count)) {
    const program = await launch(name, HOOK_MS);
    await stop(program);
    expect(await program.ends(WITHIN_MS), program.shown).toBe(true);
    expect(program.told, `time ${time}`).toEqual(['ready', 'closing', 'closed']);
  }
}

const pressCtrlC = (program: Launched): void => program.pressCtrlC();

describe.skipIf(process.platform !== 'linux')('one Ctrl-C is one stop', () => {
  inProject();
  it('npm start', async () => stopsInOrder('npm start (dash)', 1, pressCtrlC));
  it('a launcher that passes it on late', async () =>
    stopsInOrder('a slow launcher', 1, pressCtrlC));
});

describe.skipIf(process.platform !== 'linux').each(Object.keys(LAUNCHERS).filter(isThere))(
  'under %s',
  { tags: 'long', timeout: 900_000 },
  (name) => {
    inProject({ fetch: true });

    it('one Ctrl-C is one stop', async () => stopsInOrder(name, 20, pressCtrlC));

    it('a second one, a second later, ends it', async () => {
      for (const time of times(20)) {
        const program = await launch(name, LONG_HOOK_MS);
        program.pressCtrlC();
        await program.tells('closing');
        await setTimeout(1_000); // a person
        program.pressCtrlC();
        expect(await program.ends(WITHIN_MS), program.shown).toBe(true);
        expect(program.told, `time ${time}`).toEqual(['ready', 'closing']);
      }
    });

    it.skipIf(ENDS_ALONE.has(name))('SIGTERM to the launcher is one stop', async () =>
      stopsInOrder(name, 20, async (program) => program.signalLauncher('SIGTERM')),
    );
  },
);
