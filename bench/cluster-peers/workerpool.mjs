import { createRequire } from 'node:module';

const require = createRequire(new URL('../../build-bench/package.json', import.meta.url));
require('workerpool').worker({ add: (a, b) => a + b });
