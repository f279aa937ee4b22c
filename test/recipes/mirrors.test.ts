// The examples `wasm` and `pyodide` as users run them: loops that look at a word of shared memory.

import { describe, expect, it } from 'vitest';
import { fetchPeers, withPeers } from '../support/peers.ts';
import { Program } from '../support/program.ts';

async function interrupted(path: string) {
  const program = new Program(path);
  await program.writes(/counting until Ctrl-C\n/);
  program.kill('SIGINT');
  const { code, stdout, stderr } = await program.ended;
  return { code, stderr, last: stdout.split('\n').at(-2) };
}

describe.skipIf(process.platform === 'win32')('a loop in a worker thread is stopped in', () => {
  it('WebAssembly', async () => {
    const { code, stderr, last } = await interrupted('examples/wasm/main.mjs');
    expect({ code, stderr }).toEqual({ code: 130, stderr: '' });
    expect(last).toMatch(/^stopped after \d+ rounds$/);
  });

  it('Python, by pyodide', { tags: 'long', timeout: 600_000 }, async () => {
    await fetchPeers();
    const end = await interrupted(`${withPeers('pyodide')}/main.mjs`);
    expect(end).toEqual({ code: 130, stderr: '', last: 'stopped in the loop' });
  });
});
