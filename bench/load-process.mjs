/**
 * node load-process.mjs MODULE [CLASS [ARGUMENT]]: imports the module and constructs the class.
 * Prints the milliseconds that the import, and both, took, and the megabytes of memory that the
 * process has more than before, as JSON.
 */

import { performance } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';

const [main, name, ...args] = process.argv.slice(2);
const before = process.memoryUsage.rss();
const start = performance.now();
const module = await import(pathToFileURL(main));
const imported = performance.now() - start;
const first = name === undefined ? module : new (module[name] ?? module.default)(...args);
const ready = performance.now() - start;
const rssMb = (process.memoryUsage.rss() - before) / 2 ** 20;
console.log(JSON.stringify({ imported, ready, rssMb }), typeof first === 'object' ? '' : '!');
