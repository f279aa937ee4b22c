/** Variables: numbers that the functions of a cluster read and update. */

import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { describe } from 'vitest';
import { module, variableStories } from './stories.ts';

describe.each(['thread', 'process'] as const)('with the isolation %s', (isolation) => {
  variableStories(
    (workers = 2) => new ClusterCoordinator(new LocalStrategy({ module, workers, isolation })),
  );
});
