// Loaded first into the processes of a cluster, during `npm run coverage`.
import { takeCoverage } from 'node:v8';
import { isMainThread } from 'node:worker_threads';

const PERIOD_MS = 500;

if (isMainThread) setInterval(() => takeCoverage(), PERIOD_MS).unref();
