// Which files and functions of lib/ three ways through the house run:
//   ways.mjs [--list]   a stop that a worker requests, until the join has ended; a call of a pool on
//                       threads and back; a call over NATS and back. --list names them, with how
//                       often each has run.
// After `npm run compile`. Each way is walked twice before it is counted.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { SourceMap } from 'node:module';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';

const root = resolve(import.meta.dirname, '..');
const dist = pathToFileURL(join(root, 'dist/')).href;
const entry = (name) => import(`${dist}${name}.js`);

/** Counts the calls of functions in this thread, or in the main thread of its process. */
async function follow(connect = 'connect') {
  const session = new Session();
  session[connect]();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    session.disconnect();
    return result
      .filter(({ url }) => url.startsWith(dist))
      .map(({ url, functions }) => ({
        url,
        ran: functions.flatMap(({ functionName, ranges: [{ count, startOffset }] }) =>
          count > 0 && startOffset > 0 // at 0 is the module
            ? [{ name: `${functionName || '(unnamed)'} ${count}`, startOffset }]
            : [],
        ),
      }));
  };
}

// ------------------------------------------------------------- the functions of the module

let followed = [];

export async function begin(alsoMain) {
  followed = [await follow()];
  if (alsoMain) followed.push(await follow('connectToMainThread'));
}

export const end = () => Promise.all(followed.map((take) => take()));

export const add = (one, other) => one + other;

// ------------------------------------------------------------- the ways

/** @returns by thread, what ran */
async function wayOfCall(pool, alsoMain) {
  for (let warm = 0; warm < 2; warm++) await pool.run('add', [1, 2]);
  await pool.run('begin', [alsoMain]);
  const take = await follow();
  await pool.run('add', [1, 2]);
  const caller = await take();
  const [worker, node] = await pool.run('end', []);
  return { caller, ...(node && { node }), worker };
}

async function onThreads() {
  const { createPool } = await entry('pool/index');
  const pool = createPool(new URL(import.meta.url), { workers: 1 });
  const way = await wayOfCall(pool, false);
  await pool.close();
  return way;
}

async function overNats() {
  const [{ ClusterCoordinator }, { NatsStrategy }] = await Promise.all([
    entry('cluster/index'),
    entry('nats/index'),
  ]);
  const binary = spawn('bash', [join(root, 'scripts/nats-server.sh')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [path] = await binary.stdout.toArray();
  const port = 20_000 + (process.pid % 20_000);
  const store = join(root, 'build-nats', `ways-${process.pid}`);
  const server = spawn(String(path).trim(), ['-p', port, '-js', '-sd', store], { stdio: 'ignore' });
  const servers = `127.0.0.1:${port}`;
  const file = fileURLToPath(import.meta.url);
  const command = [
    'worker',
    '--module',
    file,
    '--servers',
    servers,
    '--cluster',
    'ways',
    '--slots',
    1,
  ];
  const node = spawn(process.execPath, [join(root, 'dist/cli/main.js'), ...command], {
    stdio: 'ignore',
  });
  try {
    const module = new URL(import.meta.url);
    const strategy = new NatsStrategy({ servers, cluster: 'ways', module });
    const cluster = new ClusterCoordinator(strategy);
    await cluster.ready();
    const way = await wayOfCall(cluster, true);
    await cluster.close();
    return way;
  } finally {
    node.kill();
    server.kill();
  }
}

async function ofStop() {
  const { Coordinator } = await entry('index');
  const walk = async () => {
    const coord = new Coordinator();
    const worker = coord.spawn(new URL(import.meta.url), { workerData: 'way of a stop' });
    const [ran, take] = await new Promise((settle) => {
      worker.once('message', async () => {
        const counted = await follow();
        worker.once('message', (message) => settle([message, counted]));
        worker.postMessage('stop');
      });
    });
    await coord.join();
    return { worker: ran, joiner: await take() };
  };
  for (let warm = 0; warm < 2; warm++) await walk();
  return walk();
}

async function beWorker() {
  const { Coordinator } = await entry('index');
  const coord = Coordinator.current();
  const asked = new Promise((settle) => parentPort.once('message', settle));
  parentPort.postMessage('ready');
  await asked;
  const take = await follow();
  coord.requestStop();
  parentPort.postMessage(await take());
}

// ------------------------------------------------------------- the table

const maps = new Map();

function sourceOf(url, offset) {
  let known = maps.get(url);
  if (known === undefined) {
    const path = fileURLToPath(url);
    const text = readFileSync(path, 'utf8');
    // The command line has no maps: a file of dist/ stands for its sources there.
    const map = existsSync(`${path}.map`) && JSON.parse(readFileSync(`${path}.map`, 'utf8'));
    known = { text, map: map && new SourceMap(map), path };
    maps.set(url, known);
  }
  if (known.map === false) return relative(root, known.path);
  const before = known.text.slice(0, offset).split('\n');
  const found = known.map.findEntry(before.length - 1, before.at(-1).length);
  if (found.originalSource === undefined) return undefined;
  return relative(root, resolve(known.path, '..', found.originalSource));
}

function print(title, way, isListing) {
  const all = new Set();
  const rows = Object.entries(way).map(([thread, ran]) => {
    const byFile = new Map();
    for (const { url, ran: functions } of ran) {
      for (const { name, startOffset } of functions) {
        const file = sourceOf(url, startOffset);
        if (file !== undefined) byFile.set(file, [...(byFile.get(file) ?? []), name]);
      }
    }
    for (const file of byFile.keys()) all.add(file);
    const functions = [...byFile.values()].flat();
    const list = [...byFile].map(([file, names]) => `\n    ${file}: ${names.join(', ')}`);
    const line = `  ${thread}: ${functions.length} functions in ${byFile.size} files`;
    return isListing ? `${line}${list.toSorted().join('')}` : line;
  });
  console.log([`${title}: ${all.size} files`, ...rows].join('\n'));
}

const isProgram = process.argv[1] === fileURLToPath(import.meta.url);
if (isProgram && isMainThread) {
  const { values } = parseArgs({ options: { list: { type: 'boolean', default: false } } });
  print('requestStop in a worker, until join() has ended', await ofStop(), values.list);
  print('run() on threads and back', await onThreads(), values.list);
  print('run() over NATS and back', await overNats(), values.list);
} else if (parentPort !== null && workerData === 'way of a stop') {
  await beWorker();
}
