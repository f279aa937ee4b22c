/** The source maps of dist/, by which `node --enable-source-maps` names the lines of lib/. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { describe, expect, it } from 'vitest';
import { lineMap } from '../../scripts/line-maps.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const dist = join(root, 'dist');

describe('the source maps', () => {
  it('lead from a stack to the line of lib/ that threw', () => {
    const program = `import(${JSON.stringify(pathToFileURL(join(dist, 'index.js')).href)}).then(
      ({ Coordinator }) => new Coordinator('no options'))`;
    const { stderr } = spawnSync(process.execPath, ['--enable-source-maps', '-e', program], {
      encoding: 'utf8',
      timeout: 120_000,
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    const [, file = '', line = ''] = /\((\/.*\/lib\/.*\.ts):(\d+):\d+\)/.exec(stderr) ?? [];
    expect(readFileSync(file, 'utf8').split('\n')[Number(line) - 1]).toContain('new TypeError(');
    expect(stderr).toContain(join(root, 'lib/coordinator/coordinator.ts'));
    expect(stderr).not.toContain(dist);
  });

  it('name the line that the full map names, wherever a line of the bundle is entered', async () => {
    const build = await rolldown({ input: join(root, 'lib/looper/looper-thread.ts') });
    const { output } = await build.generate({ sourcemap: true });
    await build.close();
    const [{ code, map }] = output;
    const [full, lines] = [map!, lineMap(map!)].map((each) => new SourceMap(each as never));
    const differences = code.split('\n').flatMap((text, line) =>
      Array.from(text.matchAll(/\S/g)).flatMap(({ index }) => {
        const [wanted, found] = [full!, lines!].map((each) => {
          const { originalSource, originalLine } = each.findEntry(line, index) as {
            originalSource?: string;
            originalLine?: number;
          };
          return `${originalSource}:${originalLine}`;
        });
        return wanted === found ? [] : `${line}:${index} is ${found}, not ${wanted}`;
      }),
    );
    expect(differences).toEqual([]);
    expect(lineMap(map!).mappings.length).toBeLessThan(map!.mappings.length / 3);
  });

  it('are those of the library: the command line has none, and names none', () => {
    const program = join(dist, 'cli/main.js');
    expect(existsSync(`${program}.map`)).toBe(false);
    expect(readFileSync(program, 'utf8')).not.toContain('sourceMappingURL');
  });

  it('name sources that exist', () => {
    const files = readdirSync(dist, { recursive: true, encoding: 'utf8' });
    const maps = files.filter((file) => file.endsWith('.js.map')).map((file) => join(dist, file));
    expect(maps).toContain(join(dist, 'core.js.map'));
    for (const map of maps) {
      const { sources } = JSON.parse(readFileSync(map, 'utf8')) as { sources: string[] };
      expect(sources.filter((source) => !existsSync(join(dirname(map), source)))).toEqual([]);
    }
  });
});
