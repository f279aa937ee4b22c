import { Coordinator } from 'allstop';

const coord = Coordinator.current();
if (coord) throw Object.assign(new TypeError('disk gone'), { code: 'E_DISK' });
