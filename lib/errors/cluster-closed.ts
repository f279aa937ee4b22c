import { FailedPreconditionError } from './errors.ts';

/** The error of what is asked of a cluster that the program has closed. */
export const clusterClosed = (): FailedPreconditionError =>
  new FailedPreconditionError('The cluster is closed: make a new one');
