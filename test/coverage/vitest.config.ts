/** The vitest suites for `npm run coverage`, which runs them in a copy of the checkout. */
import { fileURLToPath } from 'node:url';
import { mergeConfig } from 'vitest/config';
import config from '../../vitest.config.ts';

export default mergeConfig(config, {
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: {
    setupFiles: [fileURLToPath(new URL('take-coverage.ts', import.meta.url))],
  },
});
