// Deletes the declarations in dist/ that no entry point of the package reaches: nobody can import
// what they declare.
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const SPECIFIER = /(?:\bfrom|\bimport\(?)\s*['"](\.{1,2}\/[^'"]+)\.[jt]s['"]/g;

/** The files that `entries` name, those too that they import, and so on. */
function reachable(entries) {
  const found = new Set();
  const visit = (file) => {
    if (found.has(file) || !existsSync(file)) return; // an import in an example of a comment
    found.add(file);
    for (const [, path] of readFileSync(file, 'utf8').matchAll(SPECIFIER))
      visit(normalize(join(dirname(file), `${path}.d.ts`)));
  };
  for (const entry of entries) visit(entry);
  return found;
}

/** `manifest`: package.json. */
export function pruneDeclarations(root, manifest) {
  const entries = Object.values(manifest.exports)
    .map(({ types }) => types)
    .filter((types) => types?.startsWith('./dist/'))
    .map((types) => join(root, types));
  const kept = reachable(entries);
  for (const name of readdirSync(join(root, 'dist'), { recursive: true })) {
    const file = join('dist', name);
    if (!name.endsWith('.d.ts')) continue;
    if (!kept.has(join(root, file))) rmSync(join(root, file));
  }
}
