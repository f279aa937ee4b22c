/** CommonJS modules; and modules that cannot be used: what is wrong, where, and what to do. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ClusterCoordinator, LocalStrategy, UnavailableError } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { describe, expect, it, onTestFinished } from 'vitest';
import { errorOf } from '../../support/clusters.ts';

const local = (module: URL): LocalStrategy => new LocalStrategy({ module, workers: 1 });
/** Nothing listens at this address. */
const remote = (module: URL): NatsStrategy =>
  new NatsStrategy({ module, servers: '127.0.0.1:1', cluster: 'modules' });

function start(strategy: LocalStrategy | NatsStrategy): ClusterCoordinator {
  const cluster = new ClusterCoordinator(strategy);
  onTestFinished(() => cluster.close());
  return cluster;
}

/** The URL of the first file, in a new folder, with the other files beside it. */
function write(files: Record<string, string>): URL {
  const folder = mkdtempSync(join(tmpdir(), 'allstop-modules-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return pathToFileURL(join(folder, Object.keys(files)[0]!));
}

describe('options.module', () => {
  const strategies: [string, (options: never) => unknown][] = [
    ['LocalStrategy', (options) => new LocalStrategy(options)],
    ['NatsStrategy', (options) => new NatsStrategy(options)],
  ];

  describe.each(strategies)('of a %s', (_, make) => {
    it.each([
      ["'./sub/tasks.mjs'", { module: './sub/tasks.mjs' }, './sub/tasks.mjs'],
      ['as Piscina takes it', { module: { filename: './sub/tasks.mjs' } }, './sub/tasks.mjs'],
      ['left out', {}, './tasks.mjs'],
      ['no path', { module: 3 }, './tasks.mjs'],
    ])('that is %s is refused, with what to write', (__, options, path) => {
      const wrong = (): unknown => make(options as never);
      expect(wrong).toThrow(TypeError);
      expect(wrong).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }));
      expect(wrong).toThrow(/^The "options.module" property must be an instance of URL. Received /);
      expect(wrong).toThrow(
        `: write new URL('${path}', import.meta.url), or in CommonJS pathToFileURL(require.resolve('${path}'))`,
      );
    });

    it('that is the text of a URL is refused, with what to write', () => {
      const text = 'file:///tasks.mjs';
      for (const module of [text, { filename: text }]) {
        const wrong = (): unknown => make({ module } as never);
        expect(wrong).toThrow(`: write new URL('${text}')`);
      }
    });
  });
});

it.each([
  ['LocalStrategy', local],
  ['NatsStrategy', remote],
])('a file that does not exist: %s', async (_, strategy) => {
  const module = new URL('no-such.mjs', import.meta.url);
  const cluster = start(strategy(module));
  const why = `The module ${module.href} cannot be imported: there is no file ${fileURLToPath(module)} (correct the option 'module')`;
  const error = await errorOf(cluster.run('add', [1, 2]));
  expect(error).toBeInstanceOf(UnavailableError);
  expect(error.message).toBe(why);
  expect((await errorOf(cluster.ready())).message).toContain(`The cluster is not ready: ${why}`);
});

it.each([
  ['LocalStrategy', local],
  ['NatsStrategy', remote],
])('a folder: %s', async (_, strategy) => {
  const module = new URL('.', import.meta.url);
  const cluster = start(strategy(module));
  const why = `The module ${module.href} cannot be imported: ${fileURLToPath(module)} is a folder (give the file of the module in it as the option 'module')`;
  const error = await errorOf(cluster.run('add', [1, 2]));
  expect(error).toBeInstanceOf(UnavailableError);
  expect(error.message).toBe(why);
});

it('a URL of no file: a NatsStrategy takes it with a definition only', async () => {
  const module = new URL('data:text/javascript,export const add = (a, b) => a + b;');
  expect(() => remote(module)).toThrow(
    expect.objectContaining({
      name: 'InvalidArgumentError',
      message: expect.stringMatching(/options.module must be a file: URL.*Received 'data:text/),
    }),
  );
  const options = { module, servers: '127.0.0.1:1', cluster: 'modules', definition: 'v1' };
  expect(new NatsStrategy(options).module).toBe(module);
  expect(await start(local(module)).run('add', [1, 2])).toBe(3);
});

it('a syntax error of which Node tells the line', async () => {
  const module = write({
    'main.mjs': "// The second line is wrong.\nimport { nothing } from './other.mjs';",
    'other.mjs': '',
  });
  const error = await errorOf(start(local(module)).run('add'));
  const text = "The requested module './other.mjs' does not provide an export named 'nothing'";
  expect(error.message).toBe(
    `The module ${module.href} cannot be imported: SyntaxError: ${text}, at ${module.href}:2`,
  );
  expect(error.cause).toBeInstanceOf(SyntaxError);
});

it('a syntax error of which Node does not tell the line', async () => {
  const module = write({ 'main.mjs': 'export function add(a, b) {\n  return [a + b;\n}' });
  const cluster = start(local(module));
  const error = await errorOf(cluster.run('add'));
  const why = `SyntaxError: ${error.cause.message} (\`node ${fileURLToPath(module)}\` shows the line)`;
  expect(error.message).toBe(`The module ${module.href} cannot be imported: ${why}`);
  const { report } = await errorOf(cluster.ready());
  expect(report.tasks[0]).toMatchObject({ phase: 'import-failed', cause: why });
});

it('an addon that one thread of a process can load: use processes', async () => {
  // Node says so of an addon that does not know environments, when a second thread loads it.
  const why = "Module did not self-register: '/app/addon.node'.";
  const module = write({ 'main.mjs': `throw new Error(${JSON.stringify(why)});` });
  const { report } = await errorOf(start(local(module)).ready());
  expect(report.tasks[0]).toMatchObject({ phase: 'import-failed', cause: why });
  expect(report.tasks[0].remedy).toContain("isolation: 'process'");
});

describe('a CommonJS module of which Node does not find the names of the exports', () => {
  const source = `
    const add = (a, b) => a + b;
    const broken = { enumerable: true, get() { throw new Error('not now'); } };
    for (const value of [{ add, prepare() {}, limit: 3 }]) module.exports = value;
    Object.defineProperty(module.exports, 'broken', broken);
  `;

  it('has the functions that are properties of module.exports', async () => {
    const module = write({ 'main.cjs': source });
    const { add } = createRequire(import.meta.url)(fileURLToPath(module));
    const cluster = start(new LocalStrategy({ module, workers: 1, setup: 'prepare' }));
    expect(await cluster.run('add', [1, 2])).toBe(3);
    expect(await cluster.run(add, [3, 4])).toBe(7);
  });

  it.each(['toString', 'limit', 'broken'])('has no function %s', async (name) => {
    const cluster = start(local(write({ 'main.cjs': source })));
    await cluster.ready();
    const error = await errorOf(cluster.run(name));
    expect(error).toMatchObject({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' });
    expect(error.message).toMatch(/It exports the functions add, prepare\.$/);
  });
});

describe('the name of a function', () => {
  const refused = async (name: string): Promise<string> => {
    const cluster = start(
      local(write({ 'main.mjs': 'export function square() {}\nexport class Odd {}' })),
    );
    await cluster.ready();
    const error = await errorOf(cluster.run(name));
    expect(error).toBeInstanceOf(TypeError);
    return error.message;
  };

  it.each(['sqare', 'sqaure', 'SQUARE', 'squares'])('that is nearly right: %s', async (name) => {
    expect(await refused(name)).toMatch(
      /It exports the functions square\. Did you mean 'square'\?$/,
    );
  });

  it.each(['root', 'sq', 'circle'])('that is like no other: %s', async (name) => {
    expect(await refused(name)).toMatch(/It exports the functions square\.$/);
  });

  it('of a setup function that is nearly right', async () => {
    const module = write({ 'main.mjs': 'export function connect() {}' });
    const cluster = start(new LocalStrategy({ module, workers: 1, setup: 'conect' }));
    const error = await errorOf(cluster.ready());
    expect(error.message).toContain("has no function 'conect'");
    expect(error.message).toContain("Did you mean 'connect'?");
  });

  it('is that of the export, whatever changes while it is looked up', async () => {
    const exported = Array.from(
      { length: 16 },
      (_, at) => `const f${at} = () => ${at};\nexport { f${at} as get${at} };`,
    );
    const module = write({
      'main.mjs': `export const numbers = () => [];\n${exported.join('\n')}`,
    });
    const its = await import(/* @vite-ignore */ module.href);
    const cluster = start(local(module));
    await cluster.ready();
    for (let at = 0; at < 16; at++) {
      cluster.createPerWorkerDataset(its.numbers); // a change, in some microtask of the look-up
      for (let later = 0; later < at; later++) await Promise.resolve();
      expect(await cluster.run(its[`get${at}`])).toBe(at);
    }
  });
});
