// Runs with Node's permission model, which permits neither worker threads nor child processes.
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { say } from './say.mjs';

const module = new URL('data:text/javascript,export const add = 1;');
const strategy = new LocalStrategy({ module, workers: 1, isolation: process.argv[2] });
const cluster = new ClusterCoordinator(strategy);
const { message, report } = await cluster.ready().catch((error) => error);
say('not ready', { message, ...report });
await cluster.close();
