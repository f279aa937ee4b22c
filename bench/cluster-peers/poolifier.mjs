import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(new URL('../../build-bench/package.json', import.meta.url));
const { ThreadWorker } = await import(pathToFileURL(require.resolve('poolifier')));
export default new ThreadWorker(({ a, b }) => a + b);
