/** The worker of the self-test (try-binary.ts). */

import { Coordinator } from '../../coordinator/coordinator.ts';

const coord = Coordinator.current();
if (coord === undefined) throw new Error('a worker does not find its coordinator');
coord.requestStop();
