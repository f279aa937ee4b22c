// Two servers with the same features, in bench/least-servers: how many lines each has, and whether a
// request that is in flight at SIGTERM is answered.
//
//   node bench/least-servers.mjs
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { fetchPeers, peerFolder } from './peers.mjs';

const folder = fileURLToPath(new URL('least-servers', import.meta.url));

/** @returns the status of the answer, and with what the server has ended */
async function endWithRequest(file) {
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [url] = await once(createInterface(child.stdout), 'line');
  const answer = new Promise((resolve) => {
    const request = get(url, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on('error', ({ code }) => resolve(code));
  });
  await setTimeout(1_000); // the function takes longer
  child.kill();
  const [code, signal] = await once(child, 'exit');
  return [await answer, code ?? signal];
}

fetchPeers();
const copy = join(dirname(dirname(peerFolder('piscina'))), 'least-servers'); // where it finds its packages
cpSync(folder, copy, { recursive: true });
console.log('| server | lines | the request gets | exit status |\n| --- | --- | --- | --- |');
for (const [name, file] of [
  ['allstop', join(folder, 'allstop.mjs')],
  ['close-with-grace, Piscina', join(copy, 'peer.mjs')],
]) {
  const lines = readFileSync(file, 'utf8').split('\n');
  const written = lines.filter((line) => line !== '' && !line.startsWith('//')).length;
  console.log(`| ${[name, written, ...(await endWithRequest(file))].join(' | ')} |`);
}
