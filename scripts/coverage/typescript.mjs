// Coverage of TypeScript: V8 counts in every process and thread that runs dist/ (NODE_V8_COVERAGE),
// and the source maps lead back to lib/.

import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { mergeProcessCovs } from '@bcoe/v8-coverage';
import { convert } from 'ast-v8-to-istanbul';
import coverage from 'istanbul-lib-coverage';
import { rolldown } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';

/** Bundles as scripts/bundle.mjs of the copy does, with the sources in the maps, and with code that nobody calls. */
export async function bundleWithSources(tree) {
  const { inputOptions, outputOptions } = await import(
    pathToFileURL(join(tree, 'scripts/bundle.mjs'))
  );
  for (const file of readdirSync(join(tree, 'dist'), { recursive: true })) {
    if (/\.js(\.map)?$/.test(file)) rmSync(join(tree, 'dist', file));
  }
  const build = await rolldown({ ...inputOptions, treeshake: false });
  await build.write({ ...outputOptions, sourcemapExcludeSources: false });
  await build.close();
}

/**
 * What a process has executed of dist/, by the path within dist/. Some tests copy the package into
 * a project of their own, and run it there.
 */
function scriptsOf(file, tree) {
  let report;
  try {
    report = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return []; // the process was killed while it wrote
  }
  return report.result.flatMap((script) => {
    const own = script.url.startsWith(`file://${tree}/dist/`);
    const path = own
      ? script.url.slice(`file://${tree}/dist/`.length)
      : /\/node_modules\/allstop\/dist\/([^?]+\.js)$/.exec(script.url)?.[1];
    return path === undefined ? [] : [{ ...script, url: path.replace(/\?.*$/, '') }];
  });
}

const BATCH = 50;

/** The sum of what all processes have executed. */
function merged(folder, tree) {
  const files = readdirSync(folder);
  let sum = [];
  for (let at = 0; at < files.length; at += BATCH) {
    const batch = files.slice(at, at + BATCH);
    const reports = batch.map((file) => ({ result: scriptsOf(join(folder, file), tree) }));
    sum = mergeProcessCovs([{ result: sum }, ...reports]).result;
  }
  return sum;
}

function lcovOf(path, file) {
  const lines = Object.entries(file.getLineCoverage()).map(([line, hits]) => `DA:${line},${hits}`);
  const branches = Object.entries(file.b).flatMap(([id, arms]) =>
    arms.map((hits, arm) => `BRDA:${file.branchMap[id].loc.start.line},${id},${arm},${hits}`),
  );
  return `${[`SF:${path}`, ...lines, ...branches, 'end_of_record'].join('\n')}\n`;
}

/** Of a file that no process has loaded. */
const neverLoaded = (url, { length }) => ({
  url,
  functions: [
    {
      functionName: '',
      isBlockCoverage: true,
      ranges: [{ startOffset: 0, endOffset: length, count: 0 }],
    },
  ],
});

/**
 * The coverage of the sources under lib/, as text in lcov's format. `folders` have what V8 counted;
 * each is of one version of V8, since versions split a script into functions in their own ways.
 */
export async function lcovOfTypeScript({ root, tree, folders }) {
  const map = coverage.createCoverageMap({});
  for (const folder of folders) {
    const loaded = new Map(merged(folder, tree).map((each) => [each.url, each]));
    for (const name of readdirSync(join(tree, 'dist'), { recursive: true })) {
      const path = join(tree, 'dist', name);
      if (!existsSync(`${path}.map`)) continue; // a file of re-exports only has none
      const code = readFileSync(path, 'utf8');
      const sourceMap = JSON.parse(readFileSync(`${path}.map`, 'utf8'));
      const script = {
        ...(loaded.get(name) ?? neverLoaded(name, code)),
        url: pathToFileURL(path).href,
      };
      map.merge(await convert({ code, sourceMap, ast: parseAst(code), coverage: script }));
    }
  }
  return map
    .files()
    .filter((path) => path.startsWith(join(tree, 'lib/')))
    .map((path) => lcovOf(path.replace(tree, root), map.fileCoverageFor(path)))
    .join('');
}
