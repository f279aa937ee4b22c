/**
 * Makes a project with a copy of the published package in node_modules, without peer dependencies.
 */
import { cpSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
export const COMPILED = 'build-cmake/Release/allstop.node';

/** The compiled binary of this checkout. Also used as a prebuilt binary in tests. */
export const compiledBinary = join(root, COMPILED);

const family = (): string => {
  if (process.platform !== 'linux') return '';
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime === undefined ? '.musl' : '.glibc';
};

/** The path of the prebuilt binary for this platform, within the package. */
export const PREBUILT = `prebuilds/${process.platform}-${process.arch}/allstop${family()}.node`;

/** `packaged`: the folder of the package. The paths contain a space, as paths of users may. */
export type Project = { folder: string; packaged: string; cli: string };

/**
 * `compiled`, `prebuilt`: puts the binary of this checkout where `allstop build`, or npm, puts one.
 */
export function publishedCopy({ compiled = false, prebuilt = false } = {}): Project {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'a project ')));
  const packaged = join(folder, 'node_modules/allstop');
  for (const path of ['dist', 'native', 'CMakeLists.txt', 'package.json']) {
    cpSync(join(root, path), join(packaged, path), { recursive: true });
  }
  for (const path of [compiled && COMPILED, prebuilt && PREBUILT]) {
    if (path === false) continue;
    mkdirSync(dirname(join(packaged, path)), { recursive: true });
    cpSync(compiledBinary, join(packaged, path));
  }
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  return { folder, packaged, cli: join(packaged, 'dist/cli/main.js') };
}
