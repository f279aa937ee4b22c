/**
 * The seed of every random test: always the same, unless ALLSTOP_TEST_SEED names another one, as
 * `npm run nightly` does. So `npm test` fails only for what has changed.
 */
export const seed = Number(process.env['ALLSTOP_TEST_SEED'] ?? 1);
