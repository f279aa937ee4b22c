/**
 * The seed of every random test: always the same, unless ALLSTOP_TEST_SEED names another one, as
 * `npm run nightly` does. So `npm test` fails only for what has changed.
 */
export const seed = Number(process.env['ALLSTOP_TEST_SEED'] ?? 1);

/** How often a property is tried: a fifth of `most` times with the usual seed. */
export const runs = (most: number): number =>
  process.env['ALLSTOP_TEST_SEED'] === undefined ? Math.ceil(most / 5) : most;
