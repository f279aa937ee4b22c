import { BoundedQueue } from 'allstop';

export default (handle) => BoundedQueue.attach(handle).enqueueSync('tick');
