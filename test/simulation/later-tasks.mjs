/** The functions of a later version of the program: those of tasks.mjs, and one more. */

export * from './tasks.mjs';
export { square as renamed } from './tasks.mjs';
