/** The worker of the self-test. */

import { Coordinator } from '../../coordinator/coordinator.ts';

const coord = Coordinator.current();
if (coord === undefined) throw new Error('the worker does not find its coordinator');
coord.requestStop();
