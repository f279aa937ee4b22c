/** Runs the programs of docs/coming-from-piscina.md: before and after, with the output that the page has. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { fetchPeers } from '../support/peers.ts';
import { Program } from '../support/program.ts';
import { hasRedis, RedisServer } from '../support/redis.ts';

const root = new URL('../..', import.meta.url).pathname;
const page = readFileSync(join(root, 'docs/coming-from-piscina.md'), 'utf8');
const blocks = [...page.matchAll(/^```(?:js fragment file|text output-of)=(.*)\n([^]*?)^```$/gm)];
const made: string[] = [];
afterAll(() => {
  for (const folder of made) rmSync(folder, { recursive: true });
});

/** Writes the files of a project below `parent`, where the library is found. */
function project(name: string, parent: string): string {
  mkdirSync(join(root, parent), { recursive: true });
  const folder = mkdtempSync(join(root, parent, `${name}-`));
  made.push(folder);
  for (const [, path = '', text = ''] of blocks) {
    if (!path.startsWith(`${name}/`)) continue;
    const target = join(folder, path.slice(name.length + 1));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
  }
  return folder;
}

async function runs(name: string, parent: string, env: Record<string, string> = {}): Promise<void> {
  const output = blocks.find(([, path]) => path === name)?.[2];
  const folder = project(name, parent);
  for (const main of ['before', 'after']) {
    const end = await new Program(join(folder, `${main}.mjs`), [], env).ended;
    expect(end, main).toEqual({ code: 0, signal: null, stdout: output, stderr: '' });
  }
}

describe('docs/coming-from-piscina.md', () => {
  it.each(['piscina', 'tinypool'])('has a program for %s', async (name) => {
    await runs(name, 'build-listings');
  });

  it('has programs for workerpool and poolifier', { tags: 'long', timeout: 600_000 }, async () => {
    await fetchPeers();
    await runs('workerpool', 'build-bench');
    await runs('poolifier', 'build-bench');
  });

  it.skipIf(!hasRedis)('has one for BullMQ', { tags: 'long', timeout: 600_000 }, async () => {
    await fetchPeers();
    const redis = await RedisServer.start();
    try {
      const url = `redis://127.0.0.1:${redis.port}`;
      await runs('bullmq', 'build-bench', { REDIS_URL: url });
    } finally {
      await redis.stop();
    }
  });

  it('has a row for each case of Piscina that differs', () => {
    const cases = ['readme', 'suite'].map((name) =>
      readFileSync(join(root, `test/pool/piscina/${name}.test.ts`), 'utf8'),
    );
    const differing = cases.join('').match(/\bit\(\s*['"]differs: /g);
    const list = readFileSync(join(root, 'test/pool/piscina/README.md'), 'utf8');
    const table = list.slice(list.indexOf('| case | here | why |')).match(/^\| .* \|$/gm);
    expect(table).toHaveLength((differing ?? []).length + 2); // and the head
  });
});
