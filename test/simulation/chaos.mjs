/**
 * What the simulation promises, with real servers and processes: three NATS servers, workers, a
 * parameter server and this program, while workers and servers are killed and hang, by a seed.
 * Ends with 0 if every result is right, each update counts once, and the doctor finds no problem.
 *
 *   node test/simulation/chaos.mjs --seconds 60 --seed 1     (a seed of faults; times are the system's)
 */

import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { ClusterCoordinator } from '../../dist/cluster/index.js';
import { NatsResults, NatsStrategy } from '../../dist/nats/index.js';
import { randomOf } from './time.mjs';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string', default: '1' } },
});
const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const binary = execFileSync('bash', [at('../../scripts/nats-server.sh')], { encoding: 'utf8' });
const folder = mkdtempSync(join(tmpdir(), 'allstop-chaos-'));
const module = new URL('chaos-tasks.mjs', import.meta.url);
const random = randomOf(`chaos/${values.seed}`);
const between = (least, most) => least + Math.floor(random() * (most - least));

/** A process that is started again when it is killed. */
class Supervised {
  child;
  #command;

  constructor(...command) {
    this.#command = command;
    this.start();
  }

  start() {
    const [name, ...args] = this.#command;
    this.child = spawn(name, args, { stdio: 'ignore' });
  }

  async kill(awayMs) {
    this.child.kill('SIGKILL');
    await once(this.child, 'exit');
    await sleep(awayMs);
    this.start();
  }

  async hang(ms) {
    this.child.kill('SIGSTOP');
    await sleep(ms);
    this.child.kill('SIGCONT');
  }

  async end() {
    const exited = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exited;
  }
}

/** All at once, so that none is given twice. */
async function freePorts(count) {
  const taken = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(taken.map((server) => once(server, 'listening')));
  const ports = taken.map((server) => server.address().port);
  await Promise.all(taken.map((server) => once(server.close(), 'close')));
  return ports;
}

const all = await freePorts(6);
const [ports, routes] = [all.slice(0, 3), all.slice(3)];
const nats = ports.map((port, no) => {
  const file = join(folder, `s${no}.conf`);
  const others = routes.map((route) => `nats://127.0.0.1:${route}`).join(', ');
  writeFileSync(
    file,
    `server_name: s${no}\nlisten: "127.0.0.1:${port}"\njetstream { store_dir: "${folder}/s${no}" }\n` +
      `cluster { name: c, listen: "127.0.0.1:${routes[no]}", routes: [${others}] }\n`,
  );
  return new Supervised(binary.trim(), '-c', file);
});
const servers = ports.map((port) => `127.0.0.1:${port}`);
const cli = at('../../dist/cli/main.js');
const worker = (...more) => {
  const options = ['--servers', servers.join(), '--cluster', 'chaos', ...more];
  return new Supervised(
    process.execPath,
    cli,
    'worker',
    '--module',
    fileURLToPath(module),
    ...options,
  );
};
const workers = Array.from({ length: 3 }, () => worker('--slots', '2'));
const ps = worker('--job', 'ps');
const results = new NatsResults({ servers, bucket: 'results', replicas: 3 });
const strategy = new NatsStrategy({ servers, cluster: 'chaos', module, replicas: 3 });
const cluster = new ClusterCoordinator(strategy, { results, retries: Number.POSITIVE_INFINITY });

const wrong = [];
const check = (isRight, text) => {
  if (!isRight) wrong.push(text);
};
await cluster.ready();
const made = join(folder, 'made');
const total = await cluster.variable('total', 0);
const endsAt = Date.now() + Number(values.seconds) * 1_000;
const counts = { calls: 0, keys: 0, adds: 0, items: 0, faults: 0 };

async function goOn(kind, call) {
  for (let no = 0; Date.now() < endsAt; no += 1) {
    await call(no).catch((error) => wrong.push(`${kind} ${no}: ${error.stack}`));
    counts[kind] += 1;
  }
}

const works = [
  ...Array.from({ length: 4 }, () =>
    goOn('calls', async (no) => {
      check((await cluster.run('square', [{ number: no, ms: no % 50 }])) === no * no, `call ${no}`);
    }),
  ),
  goOn('keys', async (no) => {
    const number = Math.floor(no / 2);
    const value = await cluster.run('make', [number, made], { key: `k${number}` });
    check(value === number * number, `key ${number}`);
  }),
  ...Array.from({ length: 3 }, () => goOn('adds', async () => await cluster.run('add', [total]))),
  goOn('items', async (no) => {
    let next = 0;
    const items = Array.from({ length: 20 }, (_, number) => ({ number, ms: no % 30 }));
    for await (const value of cluster.map('square', items)) {
      check(value === next ** 2, `item ${next} of map ${no}`);
      next += 1;
    }
    check(next === 20, `map ${no} has ${next} items`);
  }),
];

async function harm() {
  while (Date.now() < endsAt) {
    await sleep(between(500, 3_000));
    const kind = between(0, 4);
    counts.faults += 1;
    // One server at a time: two of three have to run.
    if (kind === 0) await nats[between(0, 3)].kill(between(200, 4_000));
    else if (kind === 1) await workers[between(0, 3)].hang(between(500, 8_000));
    else await workers[between(0, 3)].kill(between(0, 3_000));
  }
}

const harming = harm();
await Promise.all(works);
await harming;
const value = await total.read();
check(value === counts.adds, `the variable is ${value} after ${counts.adds} additions`);
const notes = readFileSync(made, 'utf8').trim().split('\n');
const again = notes.length - new Set(notes).size;
check(again <= counts.faults, `${again} keys were made again by ${counts.faults} faults`);
for (let left = 15; left > 0; left -= 1) {
  await sleep(1_000);
  try {
    const asked = ['doctor', '--servers', servers.join(), '--cluster', 'chaos'];
    await promisify(execFile)(process.execPath, [cli, ...asked]);
    break;
  } catch (error) {
    if (left === 1) wrong.push(`The doctor: ${error.stdout}`);
  }
}
await cluster.close();
await Promise.all([...workers, ps, ...nats].map((each) => each.end()));
rmSync(folder, { recursive: true, force: true });
console.log(`Seed ${values.seed}: ${JSON.stringify(counts)}, ${again} keys made again`);
for (const text of wrong.slice(0, 10)) console.log(`  ${text}`);
process.exit(wrong.length > 0 ? 1 : 0);
