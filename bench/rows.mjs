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
    'A check is measured in a loop that reads the coordinator, or the signal, from a field and calls functions that the compiler does not inline. A wake-up is measured after a pause, in which the kernel and other programs evict the code of allstop from the processor’s caches. A call that takes 0.3 µs when it is repeated then takes some microseconds. So these rows show how much code and memory a path touches.',
    [
      ...by('should-stop', 'ns', [
        {
          name: 'should-stop/js',
          what: 'JS `shouldStop()`: an iteration of a loop that checks',
          peer: '`AbortSignal.aborted`',
          goal: { ratio: 1 },
          limit:
            '`shouldStop()` is two dependent loads: the index, and then the word of shared memory that other threads write. `aborted` is one load of a field that only this thread can change. The ratio also varies by some percent with the position of the compiled code in memory, so the row is measured in several processes. On Node 24 and newer the goal is met.',
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
            'The peer sets a flag and notifies. A request also checks whether it is an echo, whether a join has completed and which observers to call, and latches a record. This takes 0.2 µs more, mostly for code and memory that the pause between samples has evicted from the caches. With more waiters this is little beside their wake-ups.',
        })),
      ),
      ...by('wake-workers', 'µs', [
        {
          name: 'wake/workers',
          what: 'JS request → 8 workers in `waitForStopSync` awake',
          peer: '`Atomics.wait`/`notify`',
          goal: { ratio: 1.1 },
          limit:
            'Before a thread wakes, the request goes through JavaScript and Node-API, which takes some 15 µs when their code is not in the caches. `Atomics.notify` is one built-in function.',
        },
      ]),
      ...by('promise-latency', 'µs', [
        {
          name: 'wake/promise',
          what: 'native request → JS promise resolved',
          peer: 'bare thread-safe function that resolves a promise',
          goal: { ratio: 1.2 },
          limit:
            'Both take the same way into the event loop. There allstop checks which stop it is, and settles the wait; the bare function only resolves a promise. The difference is about 1 µs, for code that the pause between samples has evicted from the caches.',
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
          what: 'a worker’s last statement → its `exit` event (Node’s own share of the row above)',
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
            'The peer is the part that cannot be saved: one look at the clock of this machine. The rest is one copy into the ring buffer.',
        },
        {
          name: 'timeline/event',
          what: 'timeline: one event of a call, of 64 in one turn of the microtask queue',
          goal: { atMost: 50 },
        },
        {
          name: 'timeline/alone',
          what: 'timeline: one event of a call that is alone in its turn',
        },
        {
          name: 'timeline/calls',
          what: 'timeline: the three events of a trivial call, as a share of that call’s time',
          unit: '%',
          goal: { atMost: 2 },
        },
      ]),
    ],
  ),
  section(
    'Queues',
    'Items between native threads have 8 bytes, items from native threads to JavaScript have 16 bytes, and items between JavaScript threads are objects with four fields. The capacity is 1,024.',
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
                'Without competition an item costs 750 instructions in allstop, and 340 with mutex and deque (callgrind). The difference is a call through the C table on each side, and checks under the lock: of the stop, of `close`, of the threads that wait and for how many items. Of two threads, each waits while the other runs this code under the lock. Spinning before a thread sleeps (10 to 8,000 pauses were tried) gained nothing. `dequeueMany` spreads the cost over a batch.',
            },
            {
              name: `queue/native-${threads}-spin`,
              what,
              peer: 'a queue that spins (as rigtorp’s MPMCQueue)',
              goal: { ratio: 3 },
              limit:
                'The queue that spins hands an item over without the kernel, and keeps both processors busy while it waits. A thread that waits at a queue of allstop sleeps, as with mutex and deque.',
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
            'Measured alone, the producer takes 620 ns for an object (JSON, and one call of Node-API), and the consumer 235 ns. Together they take 400 ns more. The lock is a small part of this: two busy processors of one small machine slow each other down, and the consumer, which is faster than its producer, is busy, too. If the consumer waits for a millisecond between two looks, the ratio is 0.45, but each item is delayed by as much.',
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
    'The rows show the time from a stop until a thread sees it, in cases in which other flags are seen late or never. A `child()` is compared with a signal of `AbortSignal.any`.',
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
          goal: { ratio: 2 },
          limit:
            'Each child has a stop of its own: a reason for its signal, a generation, an entry of the timeline. Of the time a third is what Node needs to abort a signal, a sixth the stop in the core, and the rest what JavaScript asks the core for each child (a profile).',
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
          limit:
            'The stop is the first of its process. With 10 dropped children in place of 20,000 it takes 661 µs on Node 20 and 790 on Node 26, `AbortSignal.any` 553 and 467 (bench/children-process.mjs): this is code that V8 has not run before. The dropped children add 0.2 to 0.6 ms.',
        },
      ]),
      ...by('plain', 'µs', [
        {
          name: 'child/cost',
          what: 'a `child()`, a listener of its signal, and its end: processor time',
          peer: '`AbortSignal.any`',
          goal: { ratio: 1.25 },
          limit:
            'A child is a coordinator of the core, which native threads can see, with a signal on top. The core’s own child, and a signal in which native code finds it, take 0.9 to 1.6 of `AbortSignal.any`, without other JavaScript (bench/limits-process.mjs, `child-native`, six runs on a busy machine). The rest is JavaScript: the coordinator’s objects, which V8 collects only with the whole heap, for two reasons. WeakRefs and FinalizationRegistries tell when nobody has a coordinator any more, and count as uses in a collection of young objects. And the signal keeps them, since native code may take the coordinator from it; no collection of young objects takes an AbortSignal (`--trace-gc`, Node 20). Weak references of Node-API in place of WeakRefs were tried: 1.9 to 2.7 of `AbortSignal.any`. A build whose signals do not keep them, and so may miss a stop, takes 1.1 to 1.4. A child makes no system call.',
        },
        {
          name: 'child/cost-300',
          what: 'the same beside 300 MB of live objects',
          peer: '`AbortSignal.any`',
          goal: { ratio: 1.25 },
          limit:
            'As above. Beside 300 MB a collection of the whole heap takes longer, and V8 makes one each time that the children have taken what it is told (8 KiB each, native_attachment.cc; with 1 KiB and weak references of Node-API 2.0 of `AbortSignal.any`, and a heap that grows by 200 MB). The core’s own child, and a signal in which native code finds it, take 0.7 to 1.2 here (`child-native-300`); a build whose signals may miss a stop 0.9 to 1.5.',
        },
      ]),
      ...by('server-load', 'µs a request', [
        {
          name: 'server/cpu',
          what: 'HTTP server, 10,000 requests a second, each with a `child()` and a listener of its signal: processor time',
          peer: '`AbortSignal.any`',
          goal: { ratio: 1.25 },
          limit: 'As the two rows above: it is the child.',
        },
        {
          name: 'server/memory',
          what: 'memory of that HTTP server, after each of six times 20,000 requests',
          unit: 'MB',
          peer: '`AbortSignal.any`',
        },
        {
          name: 'server/bare',
          what: 'processor time of the same server without `child()` and listener',
        },
      ]),
      ...by('interruptible', 'ms', [
        ...CALLS.map((call) => ({
          name: `interrupt/${slug(call)}`,
          what: `stop → a blocked \`${call.replace(/(\)).*/, '$1')}\`${call.replace(/^[^)]*\)/, '')} under an \`Interruptible\` has ended`,
        })),
        {
          name: 'interrupt/others',
          what: 'blocked calls of threads without an `Interruptible` that a stop has interrupted meanwhile',
          unit: '',
          goal: { atMost: 0 },
        },
      ]),
    ],
  ),
  section(
    'The pool, on threads',
    'A trivial call calls the function `(a, b) => a + b`. All pools are in one process at the same time. If functions are short, allstop sends many calls in one message, and many results; the other pools post a message for each. The rows with “CPU” count all threads of the process. A row with several peers is compared with the best of them.',
    [
      ...by('cluster', 'µs', [
        {
          name: 'pool/calls',
          what: '2 workers: a trivial call, of 5,000 at once',
          peer: 'the best of four',
          goal: { ratio: 1 / 3 },
        },
        {
          name: 'pool/scheduled-calls',
          what: 'the same by `schedule` and `fetch` of a cluster',
          peer: 'the best of four',
        },
        {
          name: 'pool/round-trip',
          what: '2 workers, all pools in one process: round trip, 1 in flight',
          peer: 'the best of four',
          goal: { ratio: 1 },
          limit:
            'In this row a call of each other pool comes before each call, and evicts code and memory from the caches: see the next section for each pool alone. On two processors the kernel decides, for seconds at a time, on which of them the worker runs: on the processor of the caller, which has just gone to sleep, or on the other processor, which has to be woken. A round trip then takes 16 or 55 µs, with a bare `postMessage`, too.',
        },
        {
          name: 'pool/scheduled-round-trip',
          what: 'the same by `schedule` and `fetch` of a cluster',
          peer: 'the best of four',
        },
      ]),
      ...by('payloads', 'µs', [
        ...Object.entries(PAYLOADS).map(([key, what]) => ({
          name: `pool/argument-${key}`,
          what: `CPU of a call: ${what} as argument`,
          peer: 'the better of two',
          goal: { ratio: 1 },
          limit:
            'All pools copy a large argument twice. The cost depends on the memory for the second copy: memory that was used before (0.07 ms for 1 MB), or new memory from the system, page by page (250 page faults, 0.4 ms more). The kind of memory changes from round to round, also for a bare `postMessage` (0.07 to 0.45 ms), with the order in which the garbage collections of two heaps give memory back. Three things were tried. First, memory that is shared with the worker and used again: V8 copies it word by word (91 µs into it, 74 µs out of it, otherwise 56 µs), or byte by byte if it is not aligned. Second, a piece of the worker’s heap kept behind its arrays, so that glibc does not give their memory back: a call then takes a third of the page faults (20, not 59), but no less processor time (303 and 311 µs). Third, a clone instead of a move, which is slower. For numbers, `v8.Deserializer` takes a sixth longer than the reader of `postMessage`.',
        })),
        ...Object.entries(PAYLOADS).map(([key, what]) => ({
          name: `pool/result-${key}`,
          what: `CPU of a call: ${what} as argument and result`,
          peer: 'the better of two',
          goal: { ratio: 1 },
          limit:
            'For large values V8 takes nearly all the time, in all pools: it writes, reads and garbage-collects the values in both directions (profiles of a million numbers). allstop packs the argument when the call is made, and reads it with `v8.Deserializer`, which takes a sixth longer than the reader of `postMessage`.',
        })),
      ]),
      ...by('cluster-map', 'µs', [
        {
          name: 'pool/map',
          what: '`map` over 100,000 trivial items: one item',
          peer: 'the same by `run`, all at once',
          goal: { ratio: 1 / 1.5 },
          limit:
            'Without the package, too, an asynchronous iterator with 128 calls ahead takes 1.02 to 1.6 times as long as all calls at once, and twice the processor time (bench/limits-process.mjs, `map` and `all-at-once`, three runs on a busy machine): each item costs the `await` of a result and that of the loop. `run` has all items in its messages from the start.',
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
          goal: { ratio: 1.25 },
          limit:
            'Of a worker, in processor time (24 workers, three processes of each kind, one after the other): an empty one 41 ms, one of Piscina 47, an empty one that imports our two files 65, ours 75. V8 reads and compiles the files in each thread anew, and a code cache is the program’s to turn on, not a library’s.',
        },
        {
          name: 'pool/64-memory',
          what: '64 workers: memory of one worker',
          unit: 'MB',
          peer: 'Piscina',
          goal: { ratio: 1.1 },
          limit:
            'An empty worker has 8.2 MB, one of Piscina 8.8, an empty one that only imports our two files 9.7, which is the goal already, and ours 10.2 (24 workers, three processes of each kind). Each thread of V8 keeps the source of the files, and what it has compiled of it.',
        },
        {
          name: 'pool/64-calls',
          what: '64 workers: a trivial call, of 5,000 at once',
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
            '`assignAdd` returns a promise, since the variable may be in another process. Most of the time goes to Node’s `await`, which costs more in a function that can call `currentCall()` (AsyncLocalStorage, up to Node 22). The rest is a call of Node-API and a lock; `Atomics.add` is one instruction, which the compiler inlines.',
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
    'The plain call, each pool alone',
    'As above, but each pool is alone in processes of its own, which run one after the other. The last three rows are counts, which do not depend on the machine: V8 compiles the functions of a call meanwhile, so they show how much code a call is.',
    [
      ...by('plain', 'µs', [
        {
          name: 'plain/round-trip',
          what: 'round trip, 1 in flight',
          peer: 'the best of four',
          goal: { ratio: 1 },
          limit:
            'A call wakes two threads, as a bare `postMessage` and its answer do, and as a call of Piscina does (perf, `sched:sched_waking`: 2.2 a call in all three), and makes 8.7 system calls (strace; bare 8.2, Piscina 7.7). A worker of Piscina waits in `Atomics.wait`, which is cheaper to wake than an event loop, but its timers stand still meanwhile; a worker of allstop has to hear of a stop, and of what its functions have left. The rest is JavaScript on the main thread, some 7 µs (a profile of 20,000 calls).',
        },
        {
          name: 'plain/round-trip-bare',
          what: 'round trip, 1 in flight',
          peer: '`postMessage` to a Worker and back',
          goal: { ratio: 1.15 },
          limit: 'As above.',
        },
        {
          name: 'plain/first',
          what: 'the first 100 calls of a process, one after the other: one call',
          peer: 'the best of four',
          goal: { ratio: 1.25 },
          limit:
            'The same messages without a pool take 118 to 160 µs, Piscina 121 to 238 and allstop 284 to 354, in turn (bench/limits-process.mjs, `first`, three runs on a busy machine). The rest is JavaScript that V8 has not compiled yet: 305 calls of 194 functions on the main thread.',
        },
        {
          name: 'plain/in-flight',
          what: 'a trivial call, 64 in flight',
          peer: 'the best of four',
          goal: { ratio: 1 / 3 },
          limit:
            'The same messages without a pool, as many in a message as there are, take 1 of the 1.14 to 1.24 that allstop takes, in turn with it (bench/limits-process.mjs, `in-flight`, three runs on a busy machine): 0.44 to 0.48 of poolifier, where allstop takes 0.54. So the goal is below the messages, a promise and a claim.',
        },
        {
          name: 'plain/map',
          what: '`map` over 20,000 items, the peers with all calls at once: one item',
          peer: 'the best of four',
          goal: { ratio: 1 / 3 },
          limit:
            'On Node 26 the same messages without a pool, and an asynchronous iterator, take 9.6 to 11.7 µs, allstop 8.3 to 9.6, poolifier 14.3 to 18.0, in turn (bench/limits-process.mjs, `map`, three runs on a busy machine): so the goal is below the messages.',
        },
        {
          name: 'plain/objects-argument',
          what: 'CPU of a call: 100 objects as argument',
          peer: 'the better of two',
          goal: { ratio: 0.9 },
          limit:
            'The same messages without a pool take 0.4 to 0.8 of tinypool’s processor time, in turn with it (bench/limits-process.mjs, `objects`, three runs on a busy machine): there an argument is cloned once, when it is sent. allstop copies it when the call is made, as bytes, and the worker reads them in JavaScript, since V8’s Deserializer keeps what it has read until the next full collection: among the first 1,000 calls 1,760 thousand instructions, tinypool 1,030, bare 945 (callgrind); V8 compiles the reader meanwhile.',
        },
        {
          name: 'plain/objects-result',
          what: 'CPU of a call: 100 objects as argument and result',
          peer: 'the better of two',
          goal: { ratio: 0.9 },
        },
        {
          name: 'plain/move',
          what: 'CPU of a call: 1 MB that is moved (`transfer`)',
          peer: 'Piscina, `move`',
          goal: { ratio: 1 },
          limit:
            'The same messages without a pool take 370 to 432 µs of processor time, Piscina 262 to 574 and allstop 416 to 627, in turn (bench/limits-process.mjs, `move`, three runs on a busy machine): most of it is memory that is new for each megabyte, and its collection.',
        },
        {
          name: 'plain/shared',
          what: 'CPU of a call: a SharedArrayBuffer of 1 MB',
          peer: 'the better of two',
          goal: { ratio: 0.8 },
        },
      ]),
      ...by('plain', 'ns', [
        {
          name: 'plain/await',
          what: 'one `await` in a function of a worker',
          peer: 'the better of two',
          goal: { ratio: 1.1 },
        },
        {
          name: 'plain/await-here',
          what: 'one `await` on the main thread, after `coord.start()`',
          peer: 'without `allstop`',
          goal: { ratio: 1.1 },
        },
      ]),
      ...by('counted', 'thousand', [
        {
          name: 'counted/first',
          what: 'instructions of a trivial call, of the second to the 400th',
          peer: 'the better of two',
          goal: { ratio: 1 },
          limit:
            'The same messages without a pool, with a promise and a claim for each call, take 99 thousand, and 147 thousand from the 401st to the 1,600th (bench/limits-process.mjs, `calls`, callgrind). The rest of a call is 305 calls of 194 functions on the main thread (V8’s coverage of 1,000 calls), which V8 has not optimized yet: 180 of 339 thousand instructions are the handlers of its baseline code, 16 its optimizing compiler. In a build whose private fields and methods are public properties it is 19 thousand less.',
        },
        {
          name: 'counted/next',
          what: 'instructions of a trivial call, of the 401st to the 1,600th',
          peer: 'the better of two',
          goal: { ratio: 1 },
          limit:
            'Six tenths of them are of the optimizing compiler of V8, which compiles 49 functions of the call meanwhile (callgrind: 352 of 572 thousand), mostly on a thread of its own. The way of a call through the queue, its rules and its worker has more functions than that of Piscina or workerpool, since a call may be cancelled, run again and moved to another worker at any moment.',
        },
        {
          name: 'counted/system-calls',
          what: 'system calls of a trivial call',
          unit: '',
          peer: 'the better of two',
          goal: { ratio: 1 },
          limit:
            'The same messages without a pool take 7.5 to 8.5 system calls, in turn with 8.4 to 8.8 of allstop (bench/limits-process.mjs, `calls`, strace, three runs). Of 1,600 calls 3.5 each are `epoll_pwait`, 1.9 `read`, 1.8 `write`, by which two event loops wake each other; `futex` is nearly all of the rest: the lock of Node’s MessagePort, which the thread that wakes finds taken (two addresses, by strace). A worker of Piscina waits in `Atomics.wait` and takes its message without its event loop.',
        },
      ]),
    ],
  ),
  section(
    'The pool, on NATS',
    'The server, the coordinator and all workers run on this machine; each worker has one thread. BullMQ has a concurrency of 16, and its jobs are added in bulk. Plain JetStream is a work queue and a stream of results, with 16 pulls for each worker (bench/nats-peers). A slow link is a proxy that carries a limited number of bytes a second; its peer is the time that the bytes alone need at that rate.',
    [
      ...by('nats', 'µs', [
        {
          name: 'nats/calls-bullmq',
          what: '4 workers: a trivial call, of 2,000 at once',
          peer: 'BullMQ',
          goal: { ratio: 1 / 2 },
        },
        {
          name: 'nats/calls-jetstream',
          what: '4 workers: a trivial call, of 2,000 at once',
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
            'The processes that receive the plain message do nothing else. The stop of allstop is measured on a thread of each process that waits for the stop. The process reads and checks the message, and makes it a stop of the process. This takes 0.3 to 0.5 ms in each process: it happens once, so the code is not in the caches. Then the thread wakes, and competes with the other seven processes for two processors.',
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
            'The result, its serialized copy and the window of messages on their way are in memory at the same time; V8 frees its part of this memory later.',
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
          what: 'a node’s connection lost for 5 s: functions that were started again',
          goal: { atMost: 0 },
        },
        {
          name: 'nats/gap-stopped',
          what: 'a node’s process stopped for 5 s: functions that were started again',
          goal: { atMost: 0 },
        },
        {
          name: 'nats/gap-coordinator',
          what: 'the coordinator cut off for 5 s: functions that were started again',
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
    'Each import is measured in a fresh process. better-sqlite3, which is CommonJS, shows what loading a binary costs. Nearly all instructions of the import of `allstop` are V8’s, which reads its source; `new Coordinator()` loads `worker_threads`, and with it all streams of Node 20.',
    [
      ...by('load', 'ms', [
        {
          name: 'start/import',
          what: '`import` of `allstop`',
          peer: 'the better of two',
          goal: { ratio: 0.8 },
          limit:
            'On Node 20 the import executes 50 million instructions, that of better-sqlite3 55 (callgrind, one thread, the instructions of an import of an empty module subtracted). More than half of ours, 26 million, V8 needs to read so much source at all: a module that has the same 238 KB in one function, which nobody calls, takes as many. Shorter names of variables were tried: 3 million fewer, and a source that nobody can read in a debugger.',
        },
        {
          name: 'start/import-pool',
          what: '`import` of `allstop/pool`',
          peer: 'the better of two',
          goal: { ratio: 1.2 },
          limit:
            'The import executes 79 million instructions, that of better-sqlite3 55, on Node 20 (callgrind, less those of an empty module). The files of the pool have 410 KB of source, of which V8 needs 110 instructions a byte to read it at all (`import` of `allstop`, above): 45 million.',
        },
        {
          name: 'start/ready',
          what: '`import` of `allstop` and the first `new Coordinator()`, which loads the addon',
          peer: 'better-sqlite3, with a database in memory',
          goal: { ratio: 1.2 },
          limit:
            'Of the 94 million instructions (better-sqlite3 with its database: 61; callgrind) 33 go to `node:worker_threads`, which loads all streams in Node 20: `process.getBuiltinModule` of it alone takes them. Only this module tells whether a thread is the main thread, and what its id is.',
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
            'Compressed, the five binaries take 1.08 MB (0.21 MB each, 0.24 MB for Windows), and everything else 0.83 MB: JavaScript with its types and source maps 0.43 MB, the documents 0.19 MB, headers and the sources for other platforms 0.17 MB. So the goal would leave 0.13 MB for a binary. The binaries are compiled for size (`scripts/cross-build.mjs` says what was tried), and contain the C++ library, so that they run on old systems. A package for each platform would meet the goal. One tarball for all platforms installs without optional dependencies, and a copied `node_modules` works on another platform.',
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
    'Twice as many items need twice the memory, so with small caches of the processor an item takes a little more time. It does not take more work: callgrind counts 3,700 to 4,100 instructions for a child, among 1,000 children and among 20,000, and 3,100 to 3,400 for a registered thread.',
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
          what: 'pool, 1,000,000 queued calls: memory of one',
          unit: 'bytes',
          peer: half(1_000_000),
          goal: { flat: true },
        },
        {
          name: 'pool/queued-schedule',
          what: 'pool, 1,000,000 queued calls: an awaited `schedule`',
          peer: half(1_000_000),
          goal: { flat: true },
        },
        {
          name: 'pool/queued-run',
          what: 'pool, 1,000,000 queued calls: then run',
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
    'Two of the rows above, measured on the runtimes of `npm run test:matrix`, which come from npm. Node runs in several processes.',
    [
      ...by(
        'runtimes',
        'ns',
        NODES.map((node) => ({
          name: `runtime/should-stop-${slug(node)}`,
          what: `${node}: an iteration of a loop that checks \`shouldStop()\``,
          peer: '`AbortSignal.aborted`',
          goal: { ratio: 1 },
          limit: 'As above: two dependent loads, where the peer has one.',
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
