// Runs Python until a stop. Pyodide looks at its interrupt buffer between the instructions of Python;
// a 2 there is a SIGINT. At the stop `mirror` writes it, from whatever thread asked.
import { parentPort } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { loadPyodide } from 'pyodide';

const SIGINT = 2;

const coord = Coordinator.current();
const python = await loadPyodide();
const words = new Int32Array(new SharedArrayBuffer(4));
python.setInterruptBuffer(words);
coord.mirror(words, 0, SIGINT);

python.globals.set('say', (text) => parentPort.postMessage(text));
try {
  python.runPython(`
rounds = 0
say('counting until Ctrl-C')
try:
    while True:
        rounds += 1
finally:
    say('stopped in the loop' if rounds > 0 else 'stopped before the loop')
`);
} catch (error) {
  if (error.type !== 'KeyboardInterrupt') throw error;
}
