import { createRequire } from 'node:module';
import * as tasks from './faults.mjs';

const require = createRequire(new URL('../../build-bench/package.json', import.meta.url));
require('workerpool').worker({ ...tasks });
