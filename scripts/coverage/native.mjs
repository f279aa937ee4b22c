// Coverage of C++ by clang's source-based coverage: a branch is a condition in the source. (gcov
// also counts the edges by which each call might throw.)
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const BINARIES = [
  'build-cmake/Release/allstop.node',
  'test/addons/test-addon/build/Release/test_addon.node',
  ...['native', 'library', 'out_of_memory'].map(
    (name) => `build-native/plain/test/native/allstop_${name}_test`,
  ),
];

/** The environment in which CMake compiles for coverage. */
export function nativeEnvironment({ tree, folder }) {
  return {
    CMAKE_TOOLCHAIN_FILE: join(tree, 'scripts/toolchains/coverage.cmake'),
    ALLSTOP_PROFILES: join(folder, 'profiles'),
  };
}

function output(program, args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} has failed (exit code ${status})\n${stderr}`);
  return stdout;
}

/** The coverage of the sources under native/, as text in lcov's format. */
export function lcovOfNative({ root, tree, folder }) {
  const profiles = readdirSync(join(folder, 'profiles')).map((file) =>
    join(folder, 'profiles', file),
  );
  const merged = join(folder, 'native.profdata');
  output('llvm-profdata', ['merge', ...profiles, '-o', merged]);
  const [first, ...others] = BINARIES.map((file) => join(tree, file)).filter((file) =>
    existsSync(file),
  );
  const objects = others.flatMap((file) => ['-object', file]);
  const where = ['-instr-profile', merged, first, ...objects, join(tree, 'native')];
  const lcov = output('llvm-cov', ['export', '-format=lcov', ...where]);
  return lcov.replaceAll(`SF:${tree}/`, `SF:${root}/`);
}
