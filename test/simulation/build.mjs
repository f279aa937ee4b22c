/** Bundles what the simulation uses of lib/, as it is or with a planted fault, into build-simulation/. */

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = resolve(import.meta.dirname, '../..');

function hashOfLib(mutant) {
  const hash = createHash('sha256').update(JSON.stringify([RESTART, mutant]));
  const files = readdirSync(join(root, 'lib'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  files.push(join(import.meta.dirname, 'package.ts'));
  for (const file of files.toSorted()) hash.update(file).update(readFileSync(file));
  return hash.digest('hex').slice(0, 16);
}

/** Ids of calls begin anew with each seed: their length is that of messages. */
const RESTART = {
  file: 'pool/queue/call.ts',
  from: 'let lastId = 0;',
  to: `let lastId = 0;
    globalThis[Symbol.for('allstop:simulation:restart')] = () => { lastId = 0; };`,
};

/**
 * @param mutant - { file, from, to }[]: texts of files in lib/ that are replaced
 * @returns the URL of the bundle
 */
export async function build(mutant) {
  const folder = join(root, 'build-simulation');
  const file = join(folder, `${hashOfLib(mutant)}.mjs`);
  if (existsSync(file)) return pathToFileURL(file);
  const { rolldown } = await import('rolldown');
  const left = new Set([RESTART, ...(mutant ?? [])]);
  const plant = {
    name: 'plant',
    transform(code, id) {
      let text = code;
      for (const change of left) {
        if (id !== join(root, 'lib', change.file)) continue;
        if (!text.includes(change.from)) throw new Error(`${id} has no text ${change.from}`);
        text = text.replace(change.from, () => change.to);
        left.delete(change);
      }
      return text;
    },
  };
  const bundle = await rolldown({
    input: join(import.meta.dirname, 'package.ts'),
    platform: 'node',
    external: [/^@nats-io\//, '@opentelemetry/api'],
    plugins: [plant],
    onLog() {},
  });
  await bundle.write({ file, format: 'esm', codeSplitting: false, sourcemap: false });
  await bundle.close();
  if (left.size > 0) throw new Error(`No such file: ${[...left].map((each) => each.file).join()}`);
  return pathToFileURL(file);
}
