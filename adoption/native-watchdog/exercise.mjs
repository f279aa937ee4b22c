// For `allstop check-addon`: a worker starts the watchdog, whose thread looks once a second whether a
// process runs.
import { setTimeout as sleep } from 'node:timers/promises';

export default async (addon) => addon.start(process.pid);

export const afterwards = () => sleep(1_200);
