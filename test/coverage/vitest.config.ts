/** The vitest suites for `npm run coverage`, which runs them in a copy of the checkout. */
import { fileURLToPath } from 'node:url';
import { mergeConfig } from 'vitest/config';
import config from '../../vitest.config.ts';

export default mergeConfig(config, {
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: {
    // Node itself loads dist/, so that V8 counts in the file and not in vitest's version of it; and,
    // as without this setting, the modules of clusters.
    server: { deps: { external: [/\/dist\//, /\.mjs$/] } },
    setupFiles: [fileURLToPath(new URL('take-coverage.ts', import.meta.url))],
  },
});
