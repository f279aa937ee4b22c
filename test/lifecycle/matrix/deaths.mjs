// How a worker can die: one entry a death. The matrix crosses each with every state of states.mjs.
//
// An entry's name completes "a worker in STATE that ...". `act(cell)` brings the death about, from
// the main thread. `error`: the fields of the error that the death is, if the coordinator has not
// been stopped and watches the worker.
//
// - inside: the worker's own code brings it about, so a blocked worker cannot die of it
// - afterStop: `act` requests the stop, too; such a death is no error
// - shutsDown: what a terminated or killed thread does after a stop is no error

const trueCause = { name: 'TypeError', message: 'the true cause', code: 'E_CELL' };

export const workerDeaths = {
  'is terminated': {
    act: ({ worker }) => void worker.terminate(),
    error: { code: 'ERR_ALLSTOP_UNAVAILABLE', exitCode: 1 },
    shutsDown: true,
  },
  throws: { inside: true, act: ({ tell }) => tell('throw'), error: trueCause },
  rejects: { inside: true, act: ({ tell }) => tell('reject'), error: trueCause },
  'calls process.exit(3)': {
    inside: true,
    act: ({ tell }) => tell('exit'),
    error: { code: 'ERR_ALLSTOP_UNAVAILABLE', exitCode: 3 },
  },
  'runs out of memory': {
    inside: true,
    act: ({ tell }) => tell('run out of memory'),
    error: { code: 'ERR_WORKER_OUT_OF_MEMORY' },
  },
  'ends after a stop': {
    afterStop: true,
    act({ coord, tell }) {
      coord.requestStop();
      tell('return');
    },
  },
  'is terminated after a stop': {
    afterStop: true,
    act({ coord, worker }) {
      coord.requestStop();
      void worker.terminate();
    },
  },
};

/**
 * How a process can end around its workers. `code`, `signal`: how it must end. `stderr`: what it
 * writes there; nothing, if there is no such field.
 */
export const processDeaths = {
  'calls process.exit(7)': { act: () => process.exit(7), code: 7 },
  'throws in the main thread': {
    act() {
      setImmediate(() => {
        throw new RangeError('of the main thread');
      });
    },
    code: 1,
    stderr: /RangeError: of the main thread/,
  },
  'gets a SIGTERM that nobody handles': {
    act: () => process.kill(process.pid, 'SIGTERM'),
    signal: 'SIGTERM',
  },
  'gets a SIGTERM that stops the coordinator': {
    async act(cells) {
      for (const { coord } of cells) coord.stopOnSignals();
      process.kill(process.pid, 'SIGTERM');
      for (const { coord, tell } of cells) {
        await coord.waitForStop();
        tell('return');
      }
      const results = await Promise.all(cells.map(({ joined }) => joined));
      process.exitCode = results.some(({ threw }) => threw) ? 6 : 5;
    },
    code: 5,
  },
};
