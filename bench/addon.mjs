/** The addon whose native threads the benchmarks use. */

import { createRequire } from 'node:module';

export const addon = createRequire(import.meta.url)('./addon/build/Release/bench_addon.node');
