/** node children.mjs COUNT, for strace: COUNT children, each with a listener of its signal. */

import { Coordinator } from '../../dist/index.js';

const parent = new Coordinator();
const listener = () => {};
for (let child = 0; child < Number(process.argv[2]); child++) {
  const { signal } = parent.child();
  signal.addEventListener('abort', listener);
  signal.removeEventListener('abort', listener);
  if (child % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
}
process.exit();
