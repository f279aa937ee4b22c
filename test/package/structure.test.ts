/** Checks the layers of the code: which folder may import which. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = new URL('../..', import.meta.url).pathname;
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/** The modules that a TypeScript file in lib/ imports at run time. */
function importsOf(file: string): string[] {
  const text = read(`lib/${file}`);
  const found = text.matchAll(/^(?:import|export)\s(?!type\b)[^;]*?from '(\.[^']+)';/gm);
  return [...found].map(([, name]) => posix.join(posix.dirname(file), name as string));
}

const files = readdirSync(join(root, 'lib'), { recursive: true })
  .map(String)
  .filter((file) => file.endsWith('.ts') && !file.startsWith('cli/'));
const graph = new Map(files.map((file) => [file, importsOf(file)]));

describe('the TypeScript layers', () => {
  it('have no cycle', () => {
    const visit = (file: string, path: string[]): void => {
      expect(path, `${path.join(' -> ')} -> ${file}`).not.toContain(file);
      for (const next of graph.get(file) ?? []) visit(next, [...path, file]);
    };
    for (const file of files) visit(file, []);
  });

  it('load the binary in one place', () => {
    const loaders = files.filter((file) =>
      /require\(path\)|process\.dlopen/.test(read(`lib/${file}`)),
    );
    expect(loaders).toEqual(['native/native.ts']);
  });

  it('rest on base and errors, and on native', () => {
    for (const file of files.filter((name) => name.startsWith('errors/'))) {
      for (const name of graph.get(file) ?? []) expect(name, file).toMatch(/^errors\//);
    }
    for (const file of files.filter((name) => name.startsWith('native/'))) {
      for (const name of graph.get(file) ?? []) {
        expect(name, file).toMatch(/^(?:native|errors|base)\//);
      }
    }
  });

  it('keep index.ts to re-exports', () => {
    expect(
      read('lib/index.ts').replaceAll(/^export (?:\*|(?:type )?\{[^}]*\}) from '[^']+';\n/gm, ''),
    ).toBe('');
  });
});

describe('the cluster', () => {
  const cluster = files.filter((file) => file.startsWith('cluster/'));

  it('never speaks to the addon', () => {
    for (const file of cluster) expect(graph.get(file), file).not.toContain('native/native.ts');
  });

  it('has strategies that do not know each other, and a pool of workers that knows neither', () => {
    const others = {
      'cluster/closures/': /\/(?:pool|local|nats)\//,
      'cluster/pool/': /\/(?:nats|local)\//,
      'cluster/local/': /\/nats\//,
      'cluster/nats/': /\/local\//,
    };
    for (const [folder, foreign] of Object.entries(others)) {
      for (const file of cluster.filter((name) => name.startsWith(folder))) {
        expect(
          (graph.get(file) ?? []).filter((name) => foreign.test(name)),
          file,
        ).toEqual([]);
      }
    }
  });
});

describe('the native layers', () => {
  const includesOf = (path: string): string[] =>
    [...read(path).matchAll(/^#include [<"]([^>"]+)[>"]/gm)].map(([, name]) => name as string);
  const sources = (folder: string): string[] =>
    readdirSync(join(root, folder))
      .filter((file) => /\.(cc|h|hpp)$/.test(file))
      .map((file) => `${folder}/${file}`);

  it('keep Node out of the core, the table and the C headers', () => {
    const pure = [
      ...sources('native/core'),
      ...sources('native/abi'),
      ...sources('native/include/allstop').filter(
        (file) => !/_node\.h$|_threadsafe_function\.hpp$/.test(file),
      ),
    ];
    for (const file of pure) {
      expect(
        includesOf(file).filter((name) => /napi|node|uv\.h|v8/.test(name)),
        file,
      ).toEqual([]);
    }
  });

  it('point downwards: core to nothing, abi to core', () => {
    for (const file of sources('native/core')) {
      expect(
        includesOf(file).filter((name) => name.includes('/')),
        file,
      ).toEqual(includesOf(file).filter((name) => name.startsWith('sys/')));
    }
    for (const file of sources('native/abi')) {
      expect(
        includesOf(file).filter((name) => name.includes('binding')),
        file,
      ).toEqual([]);
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
    expect(documents).toEqual(expect.arrayContaining(['README.md', 'docs/operations.md']));
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
