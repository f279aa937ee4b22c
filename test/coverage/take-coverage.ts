/** vitest ends the processes of the test files by a signal, at which Node writes no coverage. */
import { takeCoverage } from 'node:v8';
import { afterAll } from 'vitest';

afterAll(() => {
  takeCoverage();
});
