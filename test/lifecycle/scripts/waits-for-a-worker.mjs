// Waits for nothing but a cluster whose worker never becomes ready. Its clock runs 100 times as fast.
const { setTimeout: wait } = globalThis;
const now = performance.now.bind(performance);
globalThis.setTimeout = (fn, ms, ...args) => wait(fn, ms / 100, ...args);
performance.now = () => now() * 100;

const { ClusterCoordinator, LocalStrategy } = await import('allstop/cluster');
const { say } = await import('./say.mjs');

process.on('warning', ({ code }) => {
  say('warning', { code });
  process.exit(0);
});
const module = new URL('data:text/javascript,await new Promise(() => {}); export const add = 1;');
await new ClusterCoordinator(new LocalStrategy({ module, workers: 1 })).run('add');
