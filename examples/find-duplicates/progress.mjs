// Shows the progress: as a bar on a terminal, otherwise as a line from time to time.

import cliProgress from 'cli-progress';
import { formatBytes } from './summary.mjs';

const BETWEEN_LINES_MS = 1000;
const WIDEST_BAR = 40;
const NARROWEST_BAR = 10;
/** As of "1234567 files; hashed 123.4 MB of 123.4 MB". */
const WIDEST_STATE = 44;

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
  // cli-progress cuts a line that is wider than the terminal.
  const room = stream.columns - '[] 100%    '.length - WIDEST_STATE;
  const barsize = Math.max(NARROWEST_BAR, Math.min(WIDEST_BAR, room));
  // gracefulExit would install a signal handler, but here allstop handles signals.
  const bar = new cliProgress.SingleBar({
    stream,
    format: '[{bar}] {percentage}%  {state}',
    gracefulExit: false,
    clearOnComplete: true,
    hideCursor: true,
    barsize,
  });
  bar.start(0, 0, { state: '' });
  return {
    /** @param {State} state */
    update(state) {
      bar.setTotal(state.bytesToHash); // the total grows while the walker finds files
      bar.update(state.bytesHashed, {
        state: room < NARROWEST_BAR ? `${state.files} files` : describe(state),
      });
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
