// Runs the loop of counter.mjs until a stop. At the stop `mirror` writes 1 into the word that the
// loop reads, from whatever thread asked, while this thread is in the loop.
import { parentPort } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { instantiate, STOP_WORD } from './counter.mjs';

const coord = Coordinator.current();
const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
coord.mirror(new Int32Array(memory.buffer), STOP_WORD);

const { count } = await instantiate(memory);
parentPort.postMessage('counting until Ctrl-C');
const counted = count(); // blocks this thread, until the stop
parentPort.postMessage(`stopped after ${counted} rounds`);
