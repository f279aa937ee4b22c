/** Programs that use a cluster: what keeps them alive, and the options they are started with. */

import { execFile } from 'node:child_process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { describeKinds, localKinds } from '../../support/clusters.ts';

const program = fileURLToPath(new URL('../../fixtures/cluster-program.mjs', import.meta.url));

describeKinds(localKinds, (kind) => {
  describe('a program', () => {
    const run = (...args: string[]): Promise<{ stdout: string; stderr: string }> =>
      promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname, timeout: 120_000 });

    it('that waits for nothing ends, quietly, though its workers are only starting', async () => {
      expect(await run(program, kind.name)).toEqual({ stdout: '', stderr: '' });
    });

    it('that waits for a value is kept alive until it is there, and no longer', async () => {
      expect(await run(program, kind.name, 'add')).toEqual({ stdout: '3\n', stderr: '' });
    });

    it('is kept alive by a call that got a RemoteValue, until its result is there', async () => {
      const expected = { stdout: '3\n5\n', stderr: '' };
      expect(await run(program, kind.name, 'add', 'add')).toEqual(expected);
    });

    it.each([
      [[]],
      [['--input-type=module']],
      [['--input-type', 'module', '--expose-gc', '--stack-trace-limit=5', '--no-warnings']],
    ])('that Node has as text is not run again by its workers: %j', async (options) => {
      // If workers inherited the option they would run this script, too: the second run exits with 9.
      const code = `
        if (process.env.ALLSTOP_TEST_RUNS) process.exit(9);
        process.env.ALLSTOP_TEST_RUNS = '1';
        process.argv.push('${kind.name}', 'add');
        import('${pathToFileURL(program).href}');
      `;
      expect(await run(...options, '-e', code)).toEqual({ stdout: '3\n', stderr: '' });
    });
  });
});
