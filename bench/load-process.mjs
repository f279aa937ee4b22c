/**
 * node load-process.mjs MODULE CLASS [ARGUMENT]: imports the module and constructs the class.
 * Prints the milliseconds that both took, as JSON.
 */

import { performance } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';

const [main, name, ...args] = process.argv.slice(2);
const start = performance.now();
const module = await import(pathToFileURL(main));
const imported = performance.now();
const first = new (module[name] ?? module.default)(...args);
const ready = performance.now();
console.log(JSON.stringify({ imported: imported - start, ready: ready - start, is: typeof first }));
