/** Variables: numbers that the functions of a cluster read and update. */

import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { describeIsolations } from '../../support/clusters.ts';
import { module, variableStories } from './stories.ts';

describeIsolations('with the isolation', (isolation) => {
  variableStories(
    (workers = 2) => new ClusterCoordinator(new LocalStrategy({ module, workers, isolation })),
  );
});
