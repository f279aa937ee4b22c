// How a server ends at SIGTERM while something hangs: the server of examples/server, beside one with
// Piscina, `fork` and close-with-grace. Prints a Markdown table: the time from the signal to the end
// of the process, its exit status, and whether standard error names what hung.
//
//   node bench/server-stop.mjs [grace in ms, 2000]
import { spawn } from 'node:child_process';
import { get, request } from 'node:http';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { fetchPeers } from './peers.mjs';

const GRACE_MS = Number(process.argv[2] ?? 2_000);
const PATIENCE_MS = GRACE_MS + 5_000; // then the process is killed

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const SERVERS = {
  allstop: path('../test/recipes/scripts/hanging-server.mjs'),
  'close-with-grace': path('server-stop-peer.mjs'),
};
const CULPRITS = {
  nothing: undefined,
  'a request hangs': /ALLSTOP_REQUESTS_CUT/,
  'a pool worker spins': /Still running.*spin/,
  'a pool worker is blocked in native code': /blocked in native code/,
  'a worker thread spins': /'spinner'/,
  'a native thread is blocked': /'reader'.*is blocked/,
  'a child ignores SIGTERM': /child process \d+ has not ended/,
  'the main thread computes': /main thread is computing/,
};

async function stop(server, what) {
  const child = spawn(process.execPath, [server, what, String(GRACE_MS)]);
  let stderr = '';
  child.stderr.on('data', (text) => (stderr += text));
  const exited = new Promise((resolve) => child.once('exit', (...end) => resolve(end)));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const lineOf = async (pattern) => {
    for (;;) {
      const { done, value } = await lines.next();
      if (done) break;
      const found = pattern.exec(value);
      if (found) return found;
    }
    throw new Error(`${server} has ended without ${pattern}: ${stderr}`);
  };
  const [, url] = await lineOf(/listening on (.*)/);
  const [, pid] = await lineOf(/with child (\d+)/);
  if (what === 'the main thread computes') {
    get(`${url}/spin`).on('error', () => {}); // never answered
    await lineOf(/spinning/);
  }
  if (what === 'a request hangs') {
    const head = { method: 'POST', headers: { 'content-type': 'application/json' } };
    request(`${url}/primes`, head)
      .on('error', () => {}) // it is cut
      .flushHeaders();
    await lineOf(/^in flight/);
  }
  const asked = performance.now();
  child.kill('SIGTERM');
  const patience = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  const [code, signal] = await exited;
  const ms = performance.now() - asked;
  clearTimeout(patience);
  try {
    process.kill(Number(pid), 'SIGKILL');
  } catch {
    // The child has ended.
  }
  const isNamed = CULPRITS[what]?.test(stderr) ? 'yes' : 'no';
  if (signal === 'SIGKILL') return ['does not end', '', isNamed];
  return [`${Math.round(ms)} ms`, String(code ?? signal), isNamed];
}

fetchPeers();
console.log(
  `| what hangs, with a grace of ${GRACE_MS} ms | allstop | status | named | close-with-grace | status | named |`,
);
console.log('| --- | --- | --- | --- | --- | --- | --- |');
for (const what of Object.keys(CULPRITS)) {
  const cells = [];
  for (const server of Object.values(SERVERS)) cells.push(...(await stop(server, what)));
  if (what === 'nothing') cells[2] = cells[5] = '';
  console.log(`| ${what} | ${cells.join(' | ')} |`);
}
process.exit(); // the pipes of a child that was left behind may be open
