/** What a program pays for an import: modules of Node that it may never use. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';

const dist = fileURLToPath(new URL('../../dist', import.meta.url));

/** The modules of Node that a program has loaded when it ends, by their names. */
function loadedBy(code: string): string[] {
  const program = `${code}
    console.log(process.moduleLoadList.join())`;
  const said = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  return said.split(',').map((each) => each.trim().replace('NativeModule ', ''));
}

const urlOf = (file: string): string => JSON.stringify(pathToFileURL(join(dist, file)).href);
const NEEDLESS = [
  'child_process',
  'crypto',
  'os',
  'v8',
  'http',
  'net',
  'perf_hooks',
  'worker_threads',
  'stream',
  // What an `import` of node:fs and of node:util loads, since it reads all that they export.
  'internal/fs/streams',
  'internal/mime',
  'internal/util/parse_args/parse_args',
];

it.each(['index.js', 'pool/index.js', 'cluster/index.js'])(
  '%s loads none of the modules that most programs need later or never',
  (entry) => {
    const anyway = new Set(loadedBy(''));
    const loaded = loadedBy(`await import(${urlOf(entry)});`).filter((name) => !anyway.has(name));
    expect(loaded.filter((name) => NEEDLESS.includes(name))).toEqual([]);
  },
);

it('a worker of a pool loads none of them that a bare worker does not', () => {
  const bare = `import { parentPort } from 'node:worker_threads';
    parentPort.postMessage(process.moduleLoadList);`;
  const said = execFileSync(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `import { Worker } from 'node:worker_threads';
      import { createPool } from ${urlOf('pool/index.js')};
      const bare = new Worker(new URL(${JSON.stringify(`data:text/javascript,${bare}`)}));
      const anyway = await new Promise((settle) => bare.once('message', settle));
      const tasks = 'data:text/javascript,export const loaded = () => process.moduleLoadList';
      const pool = createPool(new URL(tasks), { workers: 1 });
      const loaded = await pool.run('loaded', []);
      await pool.close();
      console.log(loaded.filter((name) => !anyway.includes(name)).join());`,
    ],
    { encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: '' } },
  );
  const loaded = said.split(',').map((each) => each.trim().replace('NativeModule ', ''));
  expect(loaded).toContain('url'); // the list has what our code loads
  expect(loaded.filter((name) => NEEDLESS.includes(name))).toEqual([]);
});

it('a Node that is too old is named, in place of what it has not', () => {
  const program = `delete process.getBuiltinModule; await import(${urlOf('index.js')}).catch(({ message }) => console.log(message));`;
  const said = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  });
  expect(said).toBe(`allstop needs Node 20.19, or 22.3 or later, and this is ${process.version}\n`);
});
