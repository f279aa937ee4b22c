/** What a program pays for an import: modules of Node that it may never use. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';

const dist = fileURLToPath(new URL('../../dist', import.meta.url));

/** The modules of Node that a program has loaded after an import, by their names. */
function loadedBy(entry: string): string[] {
  const program = `await import(${JSON.stringify(pathToFileURL(join(dist, entry)).href)});
    console.log(process.moduleLoadList.join())`;
  const said = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  return said.split(',').map((each) => each.trim().replace('NativeModule ', ''));
}

it.each(['index.js', 'pool/index.js', 'cluster/index.js'])(
  '%s loads none of the modules that take a millisecond',
  (entry) => {
    const slow = ['child_process', 'crypto', 'os', 'v8', 'http', 'net'];
    expect(loadedBy(entry).filter((name) => slow.includes(name))).toEqual([]);
  },
);
