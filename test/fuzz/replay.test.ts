// Runs the fuzz targets once with each seed of the corpora and with each input that has shown a
// fault before. `npm run fuzz` changes these inputs; CTest does the same for the C++ targets.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { bundleTarget } from '../../scripts/fuzz/instrument.mjs';

const folder = import.meta.dirname;
const targets = readdirSync(join(folder, 'javascript'))
  .filter((file) => file !== 'oracle.ts')
  .map((file) => file.replace('.ts', ''));

describe.each(targets)('the fuzz target %s', (target) => {
  const files = ['corpus', 'regressions']
    .map((kind) => join(folder, kind, target))
    .filter((path) => existsSync(path))
    .flatMap((path) => readdirSync(path).map((file) => join(path, file)));

  it('finds no fault in the inputs that are kept', async () => {
    // The bundle lies right below the package, from where the code finds package.json.
    const { path, branches } = await bundleTarget(target, join(folder, '../../build-fuzz'));
    Object.assign(globalThis, { branchCounters: new Uint8Array(branches) });
    const { fuzz } = (await import(pathToFileURL(path).href)) as {
      fuzz: (bytes: Uint8Array) => void;
    };
    expect(files).not.toEqual([]);
    for (const file of files) expect(() => fuzz(readFileSync(file)), file).not.toThrow();
  });
});
