import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import * as tasks from './faults.mjs';

const require = createRequire(new URL('../../build-bench/package.json', import.meta.url));
const { ThreadWorker } = await import(pathToFileURL(require.resolve('poolifier')));
export default new ThreadWorker({ ...tasks });
