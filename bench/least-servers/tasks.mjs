// What the pools of the least servers run: it is in flight when SIGTERM comes.
export const answer = () => new Promise((resolve) => setTimeout(resolve, 3_000, 'done'));
