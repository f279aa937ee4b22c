// Shows the progress: as a bar on a terminal, otherwise as a line from time to time.

import cliProgress from 'cli-progress';
import { formatBytes } from './summary.mjs';

const BETWEEN_LINES_MS = 1000;

/** @typedef {{ files: number, bytesToHash: number, bytesHashed: number }} State */

/** @param {NodeJS.WriteStream} stream */
export function createProgress(stream) {
  return stream.isTTY ? createBar(stream) : createLines(stream);
}

/** @param {State} state */
function describe({ files, bytesToHash, bytesHashed }) {
  return `${files} files; hashed ${formatBytes(bytesHashed)} of ${formatBytes(bytesToHash)}`;
}

/** @param {NodeJS.WriteStream} stream */
function createBar(stream) {
  // gracefulExit would install a signal handler, but here allstop handles signals.
  const bar = new cliProgress.SingleBar({
    stream,
    format: '[{bar}] {percentage}%  {state}',
    gracefulExit: false,
    clearOnComplete: true,
    hideCursor: true,
  });
  bar.start(0, 0, { state: '' });
  return {
    /** @param {State} state */
    update(state) {
      bar.setTotal(state.bytesToHash); // the total grows while the walker finds files
      bar.update(state.bytesHashed, { state: describe(state) });
    },
    end() {
      bar.stop();
    },
  };
}

/** @param {NodeJS.WriteStream} stream */
function createLines(stream) {
  let next = performance.now() + BETWEEN_LINES_MS; // a quick scan prints no line at all
  return {
    /** @param {State} state */
    update(state) {
      if (performance.now() < next) return;
      next = performance.now() + BETWEEN_LINES_MS;
      stream.write(`${describe(state)}\n`);
    },
    end() {},
  };
}
