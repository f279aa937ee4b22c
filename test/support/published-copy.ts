/** A project with the package in its node_modules, as it is published, without its peers. */
import { cpSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
export const COMPILED = 'build-cmake/Release/allstop.node';

/** As `allstop build` has left it; it serves where a test does not care which one it is. */
export const compiledBinary = join(root, COMPILED);

const family = (): string => {
  if (process.platform !== 'linux') return '';
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime === undefined ? '.musl' : '.glibc';
};

/** Of this platform, from the folder of the package. */
export const PREBUILT = `prebuilds/${process.platform}-${process.arch}/allstop${family()}.node`;

/** `packaged`: the folder of the package. There is a space in the paths, as users have. */
export type Project = { folder: string; packaged: string; cli: string };

/** `compiled`: with the binary of this checkout, in place of prebuilt ones. */
/** The binary of this checkout, in both places where there may be one. */
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
