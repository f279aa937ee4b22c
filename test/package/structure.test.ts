/** Checks the layers of the code: which folder may import which. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { subtract } from '../../scripts/coverage/verdict.mjs';
import { Arrows, circleIn, importsOfLib, includesOfNative } from '../support/arrows.ts';

const root = new URL('../..', import.meta.url).pathname;
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const files = readdirSync(join(root, 'lib'), { recursive: true })
  .map((file) => `lib/${String(file)}`)
  .filter((file) => file.endsWith('.ts'));
const arrows = new Arrows();

describe('the rooms', () => {
  it('import what their row of the table in ARCHITECTURE.md allows, and nothing else', () => {
    const objections = [...importsOfLib(), ...includesOfNative()].flatMap(
      (arrow) => arrows.objection(arrow) ?? [],
    );
    expect(objections).toEqual([]);
  });

  it('are all in the table, and the table names no others', () => {
    const folders = files.map((file) => posix.dirname(file));
    for (const room of arrows.rooms.filter((each) => each.startsWith('lib'))) {
      expect(
        folders.some((folder) => folder === room || folder.startsWith(`${room}/`)),
        room,
      ).toBe(true);
    }
    expect(files.filter((file) => arrows.roomOf(file) === '')).toEqual([]);
  });

  it('have no circle of imports, types included', () => {
    expect(circleIn(importsOfLib())).toBeUndefined();
    const circular = [
      { from: 'a', to: 'b' },
      { from: 'b', to: 'c' },
      { from: 'c', to: 'b' },
    ];
    expect(circleIn(circular)).toEqual(['b', 'c', 'b']);
  });

  it('load the binary in one place', () => {
    const loaders = files.filter(
      (file) => !file.startsWith('lib/cli/') && /require\(path\)|process\.dlopen/.test(read(file)),
    );
    expect(loaders).toEqual(['lib/native/native.ts']);
  });

  it('begin with an index.ts of re-exports', () => {
    const reExport = /^export (?:\*|(?:type )?\{[^}]*\}) from '[^']+';\n/gm;
    const head = /^\/\*\*[^]*?\*\/\n\n/;
    expect(read('lib/index.ts').replace(head, '').replaceAll(reExport, '')).toBe('');
  });
});

describe('a forbidden import', () => {
  it.each([
    [
      'upwards',
      { from: 'lib/base/timer.ts', to: 'lib/coordinator/attachment.ts' },
      'lib/base/timer.ts imports lib/coordinator/attachment.ts, but lib/base may import nothing of ours. lib/coordinator rests on lib/base: what lib/base/timer.ts needs of it belongs in lib/base or in a room below; or the code that needs it belongs in lib/coordinator.',
    ],
    [
      'between neighbours',
      { from: 'lib/queue/bounded-queue.ts', to: 'lib/looper/looper-thread.ts' },
      'lib/queue/bounded-queue.ts imports lib/looper/looper-thread.ts, but lib/queue may import lib/coordinator+. What both need belongs in a room that both may import: lib/base, lib/errors, lib/native, lib/telemetry, lib/values, lib/record, lib/events, lib/coordinator.',
    ],
    [
      'of the other end of the wire',
      { from: 'lib/nats/node/node.ts', to: 'lib/nats/coordinator/session.ts' },
      /What both need belongs in a room that both may import: .*lib\/nats\/wire, lib\/nats\/connection/,
    ],
    [
      'of one strategy by the other',
      { from: 'lib/pool/local/local-strategy.ts', to: 'lib/nats/nats-strategy.ts' },
      /What both need belongs in a room that both may import: .*lib\/pool\/workers/,
    ],
    [
      'of the command line',
      { from: 'lib/coordinator/explain.ts', to: 'lib/cli/program.ts' },
      /Nothing imports lib\/cli: what a command and the library both need belongs in the library\.$/,
    ],
    [
      'of a package',
      { from: 'lib/pool/workers/worker-pool.ts', to: '@nats-io/kv' },
      /A package is imported in the rooms whose row names it; hand lib\/pool\/workers what it needs as an argument\.$/,
    ],
    [
      'of Node by the core',
      { from: 'native/core/coordinator.cc', to: 'node_api.h' },
      /native\/core may import nothing of ours\. A package is imported in the rooms whose row names it/,
    ],
    [
      'of the addon by the core',
      { from: 'native/core/coordinator.cc', to: 'native/binding/doorbell.h' },
      /native\/binding rests on native\/core/,
    ],
    [
      'in a folder without a row',
      { from: 'lib/utils/misc.ts', to: 'lib/base/timer.ts' },
      "lib/utils/misc.ts is in no room of ARCHITECTURE.md's table: give its folder a row",
    ],
  ])('%s fails with a sentence that says where the thing belongs', (_, arrow, sentence) => {
    const objection = arrows.objection(arrow);
    if (typeof sentence === 'string') expect(objection).toBe(sentence);
    else expect(objection).toMatch(sentence);
  });

  it('is found in every form of import', () => {
    const seen = importsOfLib();
    expect(seen).toContainEqual({
      from: 'lib/coordinator/threads/watch.ts', // import type
      to: 'lib/coordinator/attachment.ts',
    });
    expect(seen).toContainEqual({
      from: 'lib/cli/doctor/probe.ts', // import()
      to: 'lib/cli/doctor/try-binary.ts',
    });
    expect(seen).toContainEqual({
      from: 'lib/index.ts', // export ... from
      to: 'lib/coordinator/coordinator.ts',
    });
  });
});

describe('ARCHITECTURE.md', () => {
  it('names files and folders that exist', () => {
    const named = [...read('ARCHITECTURE.md').matchAll(/`((?:lib|native|test)\/[\w./-]+)`/g)];
    for (const [, path] of named) expect(existsSync(join(root, path as string)), path).toBe(true);
  });
});

describe('the native layers', () => {
  const sources = (folder: string): string[] =>
    readdirSync(join(root, folder))
      .filter((file) => /\.(cc|h|hpp)$/.test(file))
      .map((file) => `${folder}/${file}`);

  it('keep Node out of the headers that do not say so by their name', () => {
    for (const { from, to } of includesOfNative()) {
      const isForNode = /_(?:node\.h|napi\.hpp|stop_flag\.hp*|threadsafe_function\.hp*)$/.test(
        from,
      );
      if (from.startsWith('native/include') && !isForNode) expect(to, from).not.toMatch(/node/);
    }
  });

  it('are built from the same sources by binding.gyp and CMakeLists.txt', () => {
    const named = (text: string): string[] =>
      [...new Set(text.match(/native\/\w+\/\w+\.cc/g))].toSorted();
    const there = ['native/abi', 'native/binding', 'native/core']
      .flatMap(sources)
      .filter((file) => file.endsWith('.cc'));
    expect(named(read('binding.gyp'))).toEqual(there);
    const core = read('native/cmake/sources.cmake').replaceAll(
      /^ {2}(\w+\/\w+\.cc)/gm,
      '  native/$1',
    );
    expect(named(read('CMakeLists.txt') + core)).toEqual(there);
  });
});

describe('the scripts', () => {
  it('import files that are in git', () => {
    const inGit = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n');
    const lost = inGit
      .filter((file) => file.startsWith('scripts/') && file.endsWith('.mjs'))
      .flatMap((file) =>
        [...read(file).matchAll(/from '(\.[^']+)'/g)].map(([, to = '']) => ({
          file,
          to: posix.join(posix.dirname(file), to),
        })),
      )
      .filter(({ to }) => !inGit.includes(to));
    expect(lost).toEqual([]);
  });
});

it('what the coverage does not count is found in its file', () => {
  const exceptions = JSON.parse(read('test/coverage/exceptions.json'));
  expect(subtract(root, new Map(), exceptions).objections).toEqual([]);
});

describe('package.json', () => {
  const manifest = JSON.parse(read('package.json'));

  it('has exact pins', () => {
    const versions = Object.values({ ...manifest.dependencies, ...manifest.devDependencies });
    for (const version of versions) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it('publishes what the documents that go with it link to', () => {
    const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
    const packed = execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' });
    const [{ files: listed }] = JSON.parse(packed) as [{ files: { path: string }[] }];
    const published = listed.map(({ path }) => path);
    const documents = published.filter((path) => /^(?:docs\/)?[\w-]+\.md$/.test(path));
    expect(documents).toEqual(expect.arrayContaining(['README.md', 'docs/nats.md']));
    const missing = documents.flatMap((document) => {
      const links = [...read(document).matchAll(/\]\((?!https?:|#)([\w./-]+)(?:#[\w-]+)?\)/g)];
      const paths = links.map(([, link]) => posix.join(posix.dirname(document), link as string));
      return paths
        .filter((path) => !published.some((file) => file === path || file.startsWith(`${path}/`)))
        .map((path) => `${document}: ${path}`);
    });
    expect(missing).toEqual([]);
  });

  it('has at most two runtime dependencies, and no install script', () => {
    expect(Object.keys(manifest.dependencies ?? {}).length).toBeLessThanOrEqual(2);
    for (const script of ['preinstall', 'install', 'postinstall', 'prepare']) {
      expect(manifest.scripts).not.toHaveProperty(script);
    }
  });
});
