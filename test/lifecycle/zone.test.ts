/** zone.js, on which Angular stands, runs microtasks early: inside of the call that made them due. */

import { expect, it } from 'vitest';
import { fetchPeers } from '../support/peers.ts';
import { Program } from '../support/program.ts';

it('a pool is made and works under zone.js, and nothing is printed', async () => {
  await fetchPeers();
  const program = new Program('test/lifecycle/scripts/zone.mjs');
  expect(await program.ended).toMatchObject({ code: 0, stdout: '49\n', stderr: '' });
});
