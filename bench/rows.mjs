/**
 * All rows of docs/benchmarks.md. A row has
 *
 * - `name`, by which its runner reports the values (bench/RUNNER.mjs, `report` of rounds.mjs);
 * - `what` is measured, in which `unit`; less is better in every row;
 * - `peer`: what is measured beside it. The values have the name, if there are several;
 * - `goal`: { ratio } to the peer at most, to the best one of several; { atMost } in the row's unit;
 *   { flat }: the ratio to the same at half the size stays below FLAT;
 * - `limit`: why the goal cannot be met, or is not met yet. Printed where it is missed.
 */

/** The largest ratio that counts as flat: a cost that grows with the number would be 2. */
export const FLAT = 1.5;

export const slug = (text) =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/-$/, '');

const section = (title, about, rows) => ({ title, about, rows });
const by = (runner, unit, rows) => rows.map((row) => ({ unit, ...row, runner }));

const TENSORFLOW = 'TensorFlow polls: up to 1 s';
const half = (count) => `the same with ${(count / 2).toLocaleString('en')}`;

const CALLS = `
  read() of a pipe, read() of an eventfd, write() to a full pipe, open() of a FIFO, accept()
  connect(), recv(), recvmsg(), poll(), select()
  epoll_wait(), nanosleep(), usleep(), waitpid(), flock()
  fcntl(F_SETLKW), sem_wait(), msgrcv(), semop(), futex(FUTEX_WAIT)
  pause(), sigsuspend(), sigwaitinfo()`
  .trim()
  .split(/,\s+|\n\s+/);
const NODES = ['Node 20', 'Node 22', 'Node 24', 'Node 26'];
const PAYLOADS = {
  object: 'a small object',
  '100-objects': '100 objects',
  '10000-objects': '10,000 objects',
  numbers: 'a million numbers',
  buffer: 'a buffer of 1 MB',
};

export const SECTIONS = [
  section(
    'A check, a wake-up, a join',
    'A check is measured in a loop that reads through a field and calls functions which the compiler does not inline. A wake-up is measured after a pause, in which the kernel and others evict our code: a call that takes 0.3 µs when repeated takes some microseconds then, so these rows weigh how much code and memory a path touches.',
    [
      ...by('should-stop', 'ns', [
        {
          name: 'should-stop/js',
          what: 'JS `shouldStop()`: an iteration of a loop that checks',
          peer: '`AbortSignal.aborted`',
          goal: { ratio: 1 },
          limit:
            'The check is two dependent loads, the index and then the word of shared memory that other threads write; `aborted` is one load of a field that only this thread can change. By some percent the ratio depends on where the compiled code comes to lie (hence several processes). On Node 24 and newer the goal is met.',
        },
        { name: 'should-stop/unchecked', what: 'the same loop without a check' },
      ]),
      ...by('native', 'ns', [
        {
          name: 'should-stop/c',
          what: 'C `allstop_should_stop`, inline',
          peer: '`std::stop_token::stop_requested`',
          goal: { ratio: 1 },
        },
        {
          name: 'should-stop/cpp',
          what: 'C++ `Coordinator::ShouldStop`, inline',
          peer: '`std::stop_token::stop_requested`',
          goal: { ratio: 1 },
        },
      ]),
      ...by(
        'native',
        'µs',
        [1, 8, 64].map((waiters) => ({
          name: `wake/native-${waiters}`,
          what: `native request → ${waiters} native waiter${waiters === 1 ? '' : 's'} awake`,
          peer: 'bare condition variable',
          goal: { ratio: 1.1 },
          limit:
            'A bare condition variable notifies after it has set a flag. A request also looks whether it is an echo, whether a join has completed and who else is to be told, and latches a record. That is 0.2 µs more, most of it code and memory that the pause between samples has evicted; with more waiters it vanishes in their wake-ups.',
        })),
      ),
      ...by('wake-workers', 'µs', [
        {
          name: 'wake/workers',
          what: 'JS request → 8 workers in `waitForStopSync` awake',
          peer: '`Atomics.wait`/`notify`',
          goal: { ratio: 1.1 },
          limit:
            'Before a thread is woken the request goes through JavaScript and Node-API, some 15 µs when they are cold; `Atomics.notify` is one built-in function.',
        },
      ]),
      ...by('promise-latency', 'µs', [
        {
          name: 'wake/promise',
          what: 'native request → JS promise resolved',
          peer: 'bare thread-safe function that resolves a promise',
          goal: { ratio: 1.2 },
          limit:
            'Both take the same way into the event loop. The answer then checks which stop it is and settles the wait, where the bare function only resolves: about 1 µs of code that the pause between samples has evicted.',
        },
      ]),
      ...by('join-latency', 'µs', [
        {
          name: 'join/task',
          what: 'last task of this thread ends → `join()` settles',
          peer: TENSORFLOW,
          goal: { atMost: 1_000 },
        },
        {
          name: 'join/native',
          what: 'last native thread ends → `join()` settles',
          peer: TENSORFLOW,
          goal: { atMost: 1_000 },
        },
        {
          name: 'join/worker',
          what: 'last worker’s `exit` event → `join()` settles',
          peer: TENSORFLOW,
          goal: { atMost: 1_000 },
        },
        {
          name: 'join/exit',
          what: 'a worker’s last statement → its `exit` event (Node’s own share of the above)',
        },
      ]),
      ...by('spawn', 'ms', [
        {
          name: 'spawn',
          what: '`spawn()` → the worker runs',
          peer: '`new Worker`',
          goal: { ratio: 1.1 },
        },
      ]),
      ...by('timeline', 'ns', [
        {
          name: 'timeline/native',
          what: 'timeline: one event of the core, with its look at the clock',
          peer: 'the look at the clock alone',
          goal: { atMost: 50 },
          limit:
            'The peer is the part that nothing can spare: what a look at the clock costs on this machine. The rest is one copy into the ring.',
        },
        {
          name: 'timeline/event',
          what: 'timeline: one event of a closure, of 64 in one turn of the microtask queue',
          goal: { atMost: 50 },
        },
        {
          name: 'timeline/alone',
          what: 'timeline: one event of a closure that is alone in its turn',
        },
        {
          name: 'timeline/closures',
          what: 'timeline: its three events of a trivial closure, of that closure’s time',
          unit: '%',
          goal: { atMost: 2 },
        },
      ]),
    ],
  ),
  section(
    'Queues',
    'Items of 8 bytes between native threads, of 16 bytes from native threads to JavaScript, objects with four fields between JavaScript threads. The capacity is 1,024.',
    [
      ...by(
        'native',
        'ns an item',
        ['1-1', '4-4'].flatMap((threads) => {
          const what = `queue, C++ → C++, ${threads.replace('-', ' to ')} thread${threads === '1-1' ? '' : 's'}, one item at a time`;
          return [
            {
              name: `queue/native-${threads}-mutex`,
              what,
              peer: '`std::mutex`, `std::deque`, condition variables',
              goal: { ratio: 1 },
              limit:
                'Without competition an item costs 750 instructions here, 340 with the mutex and the deque (callgrind): a call through the interface’s table at each side, and under the lock a look at the stop, at `close`, at who waits and for how many. Between two threads that is what each waits for the other’s lock. To spin before a thread sleeps (10 to 8,000 pauses were tried) gained nothing; `dequeueMany` spreads it over a batch.',
            },
            {
              name: `queue/native-${threads}-spin`,
              what,
              peer: 'a queue that spins (as rigtorp’s MPMCQueue)',
              goal: { ratio: 3 },
              limit:
                'The queue that spins hands an item over without asking the kernel, and burns both processors while it waits. Ours sleeps, as the queue of mutex and deque does.',
            },
          ];
        }),
      ),
      ...by('queue', 'ns an item', [
        {
          name: 'queue/native-js',
          what: 'queue, C++ → JS, 16 bytes',
          peer: 'a thread-safe function called for each',
          goal: { ratio: 1 / 5 },
        },
        {
          name: 'queue/worker-main',
          what: 'queue, worker → main, small objects',
          peer: '`MessagePort`',
          goal: { ratio: 1 / 2 },
          limit:
            'Alone, the producer takes 620 ns for an object (JSON, and one call of Node-API) and the consumer 235. Together they take 400 ns more, of which the lock is a small part: two busy processors of one small machine slow each other down, and the consumer, faster than its producer, is busy too. Where the consumer waits for a millisecond between looks the ratio is 0.45, but each item is late by as much.',
        },
      ]),
      ...by('queue-stop', 'ms', [
        {
          name: 'queue/stop',
          what: 'stop with 16 C++ threads blocked on a full queue and 16 on an empty one → `join()` settled',
          goal: { atMost: 10 },
        },
      ]),
      ...by('queue-memory', 'MB', [
        {
          name: 'queue/memory-native',
          what: 'queue, ten million items, C++ → JS: memory of the process, second half',
          peer: 'first half',
          goal: { flat: true },
        },
        {
          name: 'queue/memory-worker',
          what: 'queue, ten million items, worker → main: memory of the process, second half',
          peer: 'first half',
          goal: { flat: true },
        },
      ]),
    ],
  ),
  section(
    'Stops',
    'The time until a stop has been heard where other flags are heard late or never. `AbortSignal.any` makes what a `child()` is compared with.',
    [
      ...by('signal', 'ms', [
        {
          name: 'stop/signal',
          what: 'stop while the main thread is busy for 400 ms more → a native thread with `coord.signal` has seen it',
          peer: 'a plain AbortSignal',
          goal: { atMost: 1 },
        },
      ]),
      ...by('fork-stop', 'ms', [
        {
          name: 'stop/fork',
          what: 'stop → a forked child that computes has seen it',
          peer: '`process.send`: never, while it computes',
          goal: { atMost: 50 },
        },
      ]),
      ...by('cluster-stop', 'ms', [
        {
          name: 'stop/worker-process',
          what: 'stop → a function that computes in a worker process has seen it',
          peer: '`process.send`: never, while it computes',
          goal: { atMost: 50 },
        },
      ]),
      ...by('stop-many', 'µs each', [
        {
          name: 'stop/listeners',
          what: 'stop of a coordinator with 10,000 listeners of its signal, until all have run',
          peer: 'AbortController',
          goal: { ratio: 1.5 },
        },
        {
          name: 'stop/threads',
          what: 'stop of a coordinator with 10,000 tasks in `waitForStop()`, until `join()` settles',
          peer: '10,000 promises that an abort listener resolves',
        },
        {
          name: 'stop/children',
          what: 'stop of a coordinator with 10,000 children, until a listener of each has run',
          peer: '`AbortSignal.any`',
        },
      ]),
      ...by('children', 'MB', [
        {
          name: 'children/heap',
          what: 'heap of a process with 20,000 dropped children whose signal was read',
          peer: '`AbortSignal.any`',
          goal: { ratio: 1.5 },
        },
        {
          name: 'children/stop',
          what: 'stop of a parent with 20,000 dropped children',
          unit: 'µs',
          peer: '`AbortSignal.any`',
          goal: { ratio: 2 },
        },
      ]),
      ...by('server-load', 'µs a request', [
        {
          name: 'server/cpu',
          what: 'HTTP server, 10,000 requests a second, each with a `child()` and a listener of its signal: processor time',
          peer: '`AbortSignal.any`',
        },
        {
          name: 'server/memory',
          what: 'its memory, after each of six times 20,000 requests',
          unit: 'MB',
          peer: '`AbortSignal.any`',
        },
        { name: 'server/bare', what: 'processor time of the same server without either' },
      ]),
      ...by('interruptible', 'ms', [
        ...CALLS.map((call) => ({
          name: `interrupt/${slug(call)}`,
          what: `stop → a blocked \`${call.replace(/(\)).*/, '$1')}\`${call.replace(/^[^)]*\)/, '')} under an \`Interruptible\` has ended`,
        })),
        {
          name: 'interrupt/others',
          what: 'calls of threads without a guard that a stop has interrupted meanwhile',
          unit: '',
          goal: { atMost: 0 },
        },
      ]),
    ],
  ),
  section(
    'The pool, on threads',
    'Trivial functions are `(a, b) => a + b`, called from one process with all pools beside each other. Many closures of ours go as one message, and many results, where functions are short; the peers post each. The rows of CPU count all threads of the process. A row with several peers is compared with the best of them.',
    [
      ...by('cluster', 'µs', [
        {
          name: 'pool/closures',
          what: '2 workers: a trivial closure, of 5,000 at once',
          peer: 'the best of four',
          goal: { ratio: 1 / 1.5 },
        },
        {
          name: 'pool/round-trip',
          what: '2 workers: round trip, 1 in flight',
          peer: 'the best of four',
          goal: { ratio: 1.1 },
          limit:
            'Alone, a round trip takes 1 µs more than that of a bare `postMessage` (16.6 and 15.6 µs, both on one processor). Here each call comes after one of each other pool, which has evicted code and memory, and ours touches more of both: what it keeps of a call for a deadline, a stop, another attempt, the statistics and the timeline is some 5 µs when it is cold. On two processors the kernel decides, for seconds at a time, whether the worker runs where the caller has just gone to sleep or on the other processor, which has to be woken: that is 16 or 55 µs, with the bare mechanism, too.',
        },
      ]),
      ...by('payloads', 'µs', [
        ...Object.entries(PAYLOADS).map(([key, what]) => ({
          name: `pool/argument-${key}`,
          what: `CPU of a call: ${what} as argument`,
          peer: 'the better of two',
          goal: { ratio: 1 },
          limit:
            'A large argument is copied twice by all of them. What decides is whether the second copy gets memory that was used before (0.07 ms for 1 MB) or new memory of the system’s, page by page (250 page faults, 0.4 ms more): which it is changes from round to round, also for a bare `postMessage` (0.07 to 0.45 ms), with the order in which the collections of two heaps give memory back. Tried: memory that is shared with the worker and used again, which V8 copies word by word (91 and 74 µs to and from it, 56 otherwise), and byte by byte where it is not aligned. With a piece of the worker’s heap kept behind its arrays, so that glibc does not give their memory back, it takes a third of the page faults (20 and 59 a call), but no less processor time (303 and 311 µs). Slower: a clone instead of a move. Numbers: `v8.Deserializer` takes a sixth longer than the reader of `postMessage`.',
        })),
        ...Object.entries(PAYLOADS).map(([key, what]) => ({
          name: `pool/result-${key}`,
          what: `CPU of a call: ${what} as argument and result`,
          peer: 'the better of two',
          goal: { ratio: 1 },
          limit:
            'For large values nearly all the time is V8’s, here and there: it writes, reads and collects them in both directions (profiles of a million numbers). Ours packs the argument as the call is made, and reads it by `v8.Deserializer`, which takes a sixth longer than the reader of `postMessage`.',
        })),
      ]),
      ...by('cluster-map', 'µs', [
        {
          name: 'pool/map',
          what: '`map` over 100,000 trivial items: one item',
          peer: 'the same by `run`, all at once',
          goal: { ratio: 1 / 1.5 },
        },
        {
          name: 'pool/map-memory',
          what: '`map` over 100,000 trivial items: memory',
          unit: 'KB',
          peer: 'the same by `run`, all at once',
          goal: { ratio: 1 / 10 },
        },
      ]),
      ...by('cluster-latency', 'µs', [
        {
          name: 'pool/latency-p50',
          what: '`run` of 100 µs, 3,000 a second at random moments, 2 workers: latency, p50',
          peer: 'Piscina',
        },
        {
          name: 'pool/latency-p99',
          what: '`run` of 100 µs, 3,000 a second, 2 workers: latency, p99',
          peer: 'Piscina',
        },
        {
          name: 'pool/latency-p999',
          what: '`run` of 100 µs, 3,000 a second, 2 workers: latency, p99.9',
          peer: 'Piscina',
        },
      ]),
      ...by('pool-64', 'µs', [
        {
          name: 'pool/64-start',
          what: '64 workers: from the constructor until each has run a function',
          unit: 'ms',
          peer: 'Piscina',
        },
        { name: 'pool/64-memory', what: '64 workers: memory of one', unit: 'MB', peer: 'Piscina' },
        {
          name: 'pool/64-closures',
          what: '64 workers: a trivial closure, of 5,000 at once',
          peer: 'Piscina',
        },
      ]),
      ...by('variables', 'ns', [
        {
          name: 'variables/number',
          what: '`await variable.assignAdd(1)` of a number',
          peer: 'bare `Atomics.add`',
          goal: { ratio: 5 },
          limit:
            'An `assignAdd` is a promise, as it may run in another process: most of the time is Node’s `await`, which costs more in a function that can ask for its `currentTask()` (AsyncLocalStorage, up to Node 22). The rest is a call of Node-API and a lock, where `Atomics.add` is one instruction that the compiler inlines.',
        },
        {
          name: 'variables/floats',
          what: '`await variable.assignAdd(array)` of 10,000 floats',
          peer: 'a bare loop under a lock',
          goal: { ratio: 1.3 },
        },
      ]),
      ...by('variables-read', 'ms', [
        {
          name: 'variables/read-threads',
          what: '`variable.read()` of 40 MB by 8 worker threads at once, until all have it',
          peer: '8 threads that copy as much shared memory',
        },
        {
          name: 'variables/read-processes',
          what: '`variable.read()` of 40 MB by 8 worker processes at once, until all have it',
          peer: '8 threads that copy as much shared memory',
        },
      ]),
    ],
  ),
  section(
    'The pool, on NATS',
    'The server, the coordinator and all workers run on this machine, one thread a worker. BullMQ has a concurrency of 16, and its jobs are added in bulk; plain JetStream is a work queue and a stream of results, with 16 pulls a worker (bench/nats-peers). The slow links are a proxy that carries so many bytes a second; their peer is the time that the bytes alone take.',
    [
      ...by('nats', 'µs', [
        {
          name: 'nats/closures-bullmq',
          what: '4 workers: a trivial closure, of 2,000 at once',
          peer: 'BullMQ',
          goal: { ratio: 1 / 2 },
        },
        {
          name: 'nats/closures-jetstream',
          what: '4 workers: a trivial closure, of 2,000 at once',
          peer: 'plain JetStream',
          goal: { ratio: 1 },
        },
        {
          name: 'nats/round-trip-bullmq',
          what: '4 workers: round trip, 1 in flight',
          peer: 'BullMQ',
          goal: { ratio: 1.2 },
        },
        {
          name: 'nats/round-trip-jetstream',
          what: '4 workers: round trip, 1 in flight',
          peer: 'plain JetStream',
          goal: { ratio: 1.2 },
        },
        {
          name: 'nats/stop',
          what: 'stop of one node → 8 other processes',
          peer: 'plain publish',
          goal: { ratio: 1.2 },
          limit:
            'The plain message is heard by processes that do nothing else. Ours is measured on a thread of each that waits for the stop: the message is read, checked, and becomes a stop of the process, 0.3 to 0.5 ms each, cold, since it happens once; then a thread is woken, which competes with the other seven processes for two processors.',
        },
      ]),
      ...by('variables-read', 'ms', [
        {
          name: 'variables/read-nats',
          what: '`variable.read()` of 40 MB by 8 workers at once, until all have it',
          peer: '8 threads that copy as much shared memory',
        },
      ]),
      ...by('nats-links', 's', [
        {
          name: 'nats/slow-result',
          what: 'a result of 10 MB through a worker’s uplink of 200 KiB/s',
          peer: 'the bytes alone',
          goal: { ratio: 1.2 },
        },
        {
          name: 'nats/slow-result-sent',
          what: 'a result of 10 MB through a worker’s uplink: bytes sent',
          unit: 'MB',
          peer: 'the value',
          goal: { ratio: 1.15 },
        },
        {
          name: 'nats/slow-result-memory',
          what: 'a result of 10 MB: memory of the worker, at most, more than before',
          unit: 'MB',
          peer: 'the value',
          goal: { ratio: 2 },
          limit:
            'The result itself, its serialized copy, and the window of messages under way are in memory at a time; the heap of V8 takes back what it has used later.',
        },
        {
          name: 'nats/slow-arguments',
          what: '24 arguments of 5 MB, 4 workers, the coordinator’s uplink 2 MB/s',
          peer: 'the bytes alone',
          goal: { ratio: 1.25 },
        },
      ]),
      ...by('nats-gaps', '', [
        {
          name: 'nats/gap-connection',
          what: 'a node’s connection away for 5 s: functions that were begun again',
          goal: { atMost: 0 },
        },
        {
          name: 'nats/gap-stopped',
          what: 'a node’s process stopped for 5 s: functions that were begun again',
          goal: { atMost: 0 },
        },
        {
          name: 'nats/gap-coordinator',
          what: 'the coordinator cut off for 5 s: functions that were begun again',
          goal: { atMost: 0 },
        },
      ]),
    ],
  ),
  section('SQLite', 'A query of node:sqlite that counts to 400,000, with and without `obey`.', [
    ...by('sqlite', 'ms', [
      {
        name: 'sqlite/steps',
        what: 'a query that obeys a coordinator, `everySteps: 1000`: processor time',
        peer: 'the same query without',
        goal: { ratio: 1.02 },
      },
      {
        name: 'sqlite/stop',
        what: 'deadline → the exception of the query, p99 of 100',
        goal: { atMost: 20 },
      },
    ]),
  ]),
  section(
    'Start, size and idle cost',
    'Each import is measured in a fresh process. better-sqlite3, which is CommonJS, shows what loading a binary costs. Half of the time of `allstop` is that of Node’s own modules (`worker_threads`, `child_process`, `v8`).',
    [
      ...by('load', 'ms', [
        { name: 'start/import', what: '`import` of `allstop`', peer: 'the better of two' },
        {
          name: 'start/ready',
          what: '`import` of `allstop` and the first `new Coordinator()`, which loads the addon',
          peer: 'better-sqlite3, with a database in memory',
        },
        {
          name: 'start/import-cluster',
          what: '`import` of `allstop/cluster`',
          peer: 'the better of two',
        },
        {
          name: 'start/import-nats',
          what: '`import` of `allstop/nats`',
          peer: 'the better of two',
        },
        {
          name: 'start/memory',
          what: 'memory after `import` of `allstop` and the first `new Coordinator()`',
          unit: 'MB',
          peer: 'the better of two',
        },
        {
          name: 'start/memory-cluster',
          what: 'memory after `import` of `allstop/cluster`',
          unit: 'MB',
          peer: 'the better of two',
        },
        {
          name: 'start/memory-nats',
          what: 'memory after `import` of `allstop/nats`',
          unit: 'MB',
          peer: 'the better of two',
        },
      ]),
      ...by('package', '', [
        {
          name: 'package/tarball',
          what: 'tarball, with the binaries that can be built on Linux',
          unit: 'MB',
          goal: { atMost: 1.5 },
          limit:
            'Compressed, the five binaries are 1.05 MB (0.20 each, 0.24 for Windows), compiled for size (`scripts/cross-build.mjs` has what was tried) and with the C++ library inside, so that they run on old systems; JavaScript and types are 0.30 MB, headers and the sources for other platforms 0.17, the documents 0.16.',
        },
        { name: 'package/installed', what: 'installed', unit: 'MB', peer: 'Piscina' },
        { name: 'package/dependencies', what: 'dependencies at run time', goal: { atMost: 2 } },
        {
          name: 'package/compiles',
          what: 'fresh clone, `npm ci && npm start`: scripts that compile the addon',
          goal: { atMost: 1 },
        },
      ]),
      ...by('idle-cost', '/s', [
        {
          name: 'idle/wake-ups',
          what: 'idle: wake-ups with 100 pending waits, joins and signals',
          peer: 'a bare Node process',
          goal: { atMost: 0 },
        },
        {
          name: 'idle/threads',
          what: 'idle: threads more than a bare Node process (libuv’s pool has 1, and it is free)',
          unit: '',
          goal: { atMost: 0 },
        },
      ]),
    ],
  ),
  section(
    'Many of a kind',
    'Twice the number is twice the memory, so an item costs a little more in time where the processors’ caches are small. It does not in work: callgrind counts 3,700 to 4,100 instructions for a child among 1,000 and among 20,000, and 3,100 to 3,400 for a registered thread.',
    [
      ...by('native', 'ns each', [
        {
          name: 'core/bytes',
          what: 'core, memory of a coordinator, of 10,000',
          unit: 'bytes',
          goal: { atMost: 1_024 },
        },
        ...Object.entries({
          coordinator: 'a coordinator: created, stopped, destroyed',
          child: 'a child: created, stopped by its parent, destroyed',
          thread: 'a thread: registered, joined, ended',
        }).map(([name, what]) => ({
          name: `core/${name}`,
          what: `core, 10,000 of: ${what}`,
          peer: half(10_000),
          goal: { flat: true },
        })),
      ]),
      ...by(
        'scale',
        'µs each',
        Object.entries({
          coordinator: 'a coordinator: construct, ask, stop',
          wait: 'a pending `waitForStop()` of a child, from call to the parent’s stop',
          thread: 'a registered promise, until `join()` has settled',
        }).map(([name, what]) => ({
          name: `scale/${name}`,
          what: `JS, 10,000 of: ${what}`,
          peer: half(10_000),
          goal: { flat: true },
        })),
      ),
      ...by('cluster-memory', 'µs each', [
        {
          name: 'pool/queued-bytes',
          what: 'pool, 1,000,000 queued closures: memory of one',
          unit: 'bytes',
          peer: half(1_000_000),
          goal: { flat: true },
        },
        {
          name: 'pool/queued-schedule',
          what: 'pool, 1,000,000 queued closures: an awaited `schedule`',
          peer: half(1_000_000),
          goal: { flat: true },
        },
        {
          name: 'pool/queued-run',
          what: 'pool, 1,000,000 queued closures: then run',
          peer: half(1_000_000),
          goal: { flat: true },
        },
      ]),
      ...by('cluster-room', 'µs each', [
        {
          name: 'pool/room',
          what: 'pool, 400,000 calls that wait for room (`maxQueued` 1,000): processor time',
          peer: 'the same with 100,000',
          goal: { ratio: 1.2 },
        },
      ]),
    ],
  ),
  section(
    'Other runtimes',
    'Two rows again, on the runtimes of the matrix, which come from npm; Node is run in several processes.',
    [
      ...by(
        'runtimes',
        'ns',
        NODES.map((node) => ({
          name: `runtime/should-stop-${slug(node)}`,
          what: `${node}: an iteration of a loop that checks \`shouldStop()\``,
          peer: '`AbortSignal.aborted`',
          goal: { ratio: 1 },
          limit: 'As above: two dependent loads beside one.',
        })),
      ),
      ...by(
        'runtimes',
        'ms',
        [...NODES, 'Bun', 'Deno'].map((runtime) => ({
          name: `runtime/signal-${slug(runtime)}`,
          what: `${runtime}: stop while the main thread is busy → a native thread with \`coord.signal\` has seen it`,
          peer: 'a plain AbortSignal',
          goal: { atMost: 1 },
        })),
      ),
    ],
  ),
];

export const ROWS = SECTIONS.flatMap(({ rows }) => rows);
