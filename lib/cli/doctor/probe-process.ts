/** Runs in the child process of a probe and tells its parent each finding. */

import { tellParent } from '../base/child-output.ts';
import { tryBinary } from './try-binary.ts';

await tryBinary(tellParent);
