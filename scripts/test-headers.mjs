// Compiles the public headers with every compiler at hand, as addons of other people do: each
// header of C alone, each header before all others, and all of them together; C11 and later,
// C++17 to 23; with and without exceptions and RTTI; with every warning an error; after windows.h,
// and with the macros min and max, and those of Xlib.h.
//   node scripts/test-headers.mjs
//   node scripts/test-headers.mjs --only clang    only compilers whose name contains this
// Nothing is linked and nothing runs: the addons of test-addons.sh do that.
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';

const root = resolve(import.meta.dirname, '..');
const { values: options } = parseArgs({ options: { only: { type: 'string', default: '' } } });
const work = mkdtempSync(join(tmpdir(), 'allstop-headers-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

const require = createRequire(import.meta.url);
const nodeHeaders = resolve(process.execPath, '../../include/node');
const nodeApi = existsSync(join(nodeHeaders, 'node_api.h'))
  ? nodeHeaders
  : require('node-api-headers').include_dir;
const nodeAddonApi = resolve(root, 'node_modules/node-addon-api');
const include = `-I${join(root, 'native/include')}`;
const includes = [include, '-isystem', nodeApi, '-isystem', nodeAddonApi];
const warnings = ['-Wall', '-Wextra', '-Wpedantic', '-Wshadow', '-Werror'];

const folder = join(root, 'native/include/allstop');
const headers = readdirSync(folder)
  .filter((header) => /\.(h|hpp)$/.test(header))
  .toSorted();
const cHeaders = headers.filter((header) => header.endsWith('.h'));
const forPosix = new Set(['allstop_poll.h']); // says so in one line elsewhere

const including = (names) => names.map((name) => `#include <allstop/${name}>\n`).join('');
const uses = `#include "${join(root, 'test/package/headers/uses.hpp')}"\n`;
const windows = '#include <windows.h>\n';

// Macros that windows.h defines, for a system that has none. The headers of others are included
// before them, since these cannot live with such macros; ours must.
const systemHeaders = headers
  .flatMap((header) => [
    ...readFileSync(join(folder, header), 'utf8').matchAll(/^#include <.*>$/gm),
  ])
  .map(([line]) => line)
  .filter((line) => !/windows|intrin|eventfd/.test(line));
const macros =
  [...new Set(systemHeaders)]
    .map((line) => `#if __has_include(${line.slice(9)})\n${line}\n#endif\n`)
    .join('') +
  '#define min(a, b) ((a) < (b) ? (a) : (b))\n#define max(a, b) ((a) > (b) ? (a) : (b))\n' +
  '#define ERROR 0\n#define GetMessage GetMessageA\n#define interface struct\n#define small char\n';
// Of X11/Xlib.h.
const xlib = '#define Bool int\n#define Status int\n#define Success 0\n#define Always 2\n';

/** What needs no allstop at run time, with the types that Node-API is going to have. */
const experimental = ['-DNAPI_EXPERIMENTAL', '-DNODE_API_EXPERIMENTAL_NO_WARNING'];
const kit = including(['allstop_threadsafe_function.h', 'allstop_stop_flag.h', 'allstop_node.h']);

/** What one compiler of C compiles: the text, as what, and with which options. */
function* ofC({ isWindows }) {
  const its = isWindows ? cHeaders.filter((header) => !forPosix.has(header)) : cHeaders;
  const everything = including(its);
  for (const header of its) {
    yield { text: including([header]), standard: 'c11', flags: [], what: header };
  }
  for (const standard of ['c11', 'gnu11', 'c17', 'c2x']) {
    yield { text: everything, standard, flags: [], what: 'all headers' };
  }
  yield { text: kit, standard: 'c11', flags: experimental, what: 'the kit, NAPI_EXPERIMENTAL' };
  const strict = ['-Wstrict-prototypes', '-Wmissing-prototypes', '-Wc++-compat', '-Wundef'];
  yield { text: everything, standard: 'c11', flags: strict, what: 'all headers, strictly' };
  if (isWindows) {
    yield { text: windows + everything, standard: 'c11', flags: [], what: 'after windows.h' };
  } else {
    const posix = ['-D_POSIX_C_SOURCE=200809L'];
    yield { text: everything, standard: 'c11', flags: posix, what: 'all headers, POSIX alone' };
  }
}

const kinds = [
  { flags: ['-DNAPI_CPP_EXCEPTIONS'], kind: '' },
  { flags: ['-fno-exceptions', '-DNAPI_DISABLE_CPP_EXCEPTIONS'], kind: ', no exceptions' },
  { flags: ['-fno-rtti', '-DNAPI_CPP_EXCEPTIONS'], kind: ', no RTTI' },
  {
    flags: ['-fno-exceptions', '-fno-rtti', '-DNAPI_DISABLE_CPP_EXCEPTIONS'],
    kind: ', no exceptions, no RTTI',
  },
];

/** The same for a compiler of C++. */
function* ofCpp({ isWindows }) {
  const its = isWindows ? headers.filter((header) => !forPosix.has(header)) : headers;
  const everything = including(its) + uses;
  const [{ flags: usual }] = kinds;
  for (const header of its) {
    const text = including([header, ...its]) + uses; // finds what `header` alone lacks, too
    yield { text, standard: 'c++17', flags: usual, what: `${header} first` };
  }
  for (const standard of ['c++17', 'c++20', 'c++2b']) {
    for (const { flags, kind } of kinds) {
      yield { text: everything, standard, flags, what: `all headers${kind}` };
    }
  }
  const one = { standard: 'c++17', flags: usual };
  yield { ...one, text: kit, flags: experimental, what: 'the kit, NAPI_EXPERIMENTAL' };
  yield { text: including(its.toReversed()) + uses, ...one, what: 'the last header first' };
  yield { text: macros + everything, ...one, what: 'after macros min and max' };
  const afterXlib = (isWindows ? windows : '') + xlib + including(its); // windows.h has a `Status`
  yield { text: afterXlib, ...one, what: 'after the macros of Xlib.h' };
  if (isWindows) yield { text: windows + everything, ...one, what: 'after windows.h' };
}

const isThere = (program) => {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};
const named = (names, language, isWindows = false) =>
  names.map((program) => ({ program, language, isWindows }));
const compilers = [
  ...named(['gcc', 'clang', 'aarch64-linux-gnu-gcc', 'musl-gcc'], 'c'),
  ...named(['x86_64-w64-mingw32-gcc-posix'], 'c', true),
  ...named(['g++', 'clang++', 'aarch64-linux-gnu-g++'], 'c++'),
  ...named(['x86_64-w64-mingw32-g++-posix'], 'c++', true),
].filter(({ program }) => {
  if (!program.includes(options.only)) return false;
  if (!isThere(program)) console.log(`skipped: there is no ${program}`);
  return isThere(program);
});

const compilations = compilers.flatMap((compiler) =>
  [...(compiler.language === 'c' ? ofC : ofCpp)(compiler)].map((each) => ({ ...each, compiler })),
);

const failures = [];
const counts = new Map(compilers.map(({ program }) => [program, 0]));
let next = 0;
async function compileNext() {
  while (next < compilations.length) {
    const number = next++;
    const { compiler, text, standard, flags, what } = compilations[number];
    const file = join(work, `${number}.${compiler.language === 'c' ? 'c' : 'cc'}`);
    // The code after the headers: a file without a declaration is no C.
    writeFileSync(file, `${text}int compiled_${number}(void);\n`);
    const args = [`-std=${standard}`, ...flags, ...warnings, '-DNAPI_VERSION=8', ...includes];
    try {
      await promisify(execFile)(compiler.program, [...args, '-fsyntax-only', file]);
      counts.set(compiler.program, counts.get(compiler.program) + 1);
    } catch (error) {
      failures.push(`${compiler.program} -std=${standard}: ${what}\n${error.stderr}`);
    }
  }
}
await Promise.all(Array.from({ length: availableParallelism() }, compileNext));

for (const [program, count] of counts) console.log(`${program}: ${count} compilations are clean`);
for (const failure of failures) console.log(`FAILED: ${failure}`);
if (compilations.length === 0) console.log(`FAILED: there is no compiler`);
process.exitCode = failures.length > 0 || compilations.length === 0 ? 1 : 0;
