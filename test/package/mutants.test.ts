// `node scripts/test-faults.mjs --mutants`, which finds the planted races, is too slow for `npm test`.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const folder = join(root, 'test/faults/mutants');

it.skipIf(process.platform === 'win32').each(readdirSync(folder))(
  'the planted race %s still fits the sources',
  (patch) => {
    const flags = ['-p1', '--dry-run', '--force', '--fuzz=2', '-i', join(folder, patch)];
    const { status, stdout } = spawnSync('patch', flags, { cwd: root, encoding: 'utf8' });
    expect(status, stdout).toBe(0);
  },
);
