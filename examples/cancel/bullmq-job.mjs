// The processor that BullMQ runs in a worker thread.
import search from './search.mjs';

export default (job) => search(job.data);
