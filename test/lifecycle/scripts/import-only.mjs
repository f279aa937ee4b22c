// Neither the import nor a plain use of a coordinator keeps the process alive or starts anything.
// argv: import | use | signal.
import { say } from './say.mjs';

const listeners = () =>
  process.eventNames().map((name) => `${String(name)} ${process.listenerCount(name)}`);

process.on('exit', () => {
  say('exit', { ms: Math.round(performance.now() - startedAt) });
});
const before = { listeners: listeners(), active: process.getActiveResourcesInfo() };
const { Coordinator } = await import('allstop');
const startedAt = performance.now();

if (process.argv[2] !== 'import') {
  const coord = new Coordinator();
  globalThis.kept = coord;
  if (process.argv[2] === 'signal') coord.signal.addEventListener('abort', () => {});
  coord.stopAfter(3_600_000);
  coord.registerThread(new Promise(() => {}));
}
say('imported', {
  before,
  after: { listeners: listeners(), active: process.getActiveResourcesInfo() },
});
