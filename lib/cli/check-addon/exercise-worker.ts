/** The worker of a case: loads the addon, runs the exercise, and ends when and how it is told. */

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../base/thrown-value.ts';
import { DELIBERATE, type FromWorker, type Order } from './run-case.ts';

const order: Order & { afterwards?: true } = workerData;
const port = parentPort as MessagePort;
const tell = (told: FromWorker): void => port.postMessage(told);

/** The script's exports; `afterwards` brings about events for native threads that are left. */
type Script = { default?: (addon: unknown) => unknown; afterwards?: () => unknown };

/** The names that the addon exports. Undefined until it is loaded. */
let exported: readonly string[] | undefined;

function load(path: string): unknown {
  try {
    const addon: unknown = createRequire(import.meta.url)(path);
    exported = Object.keys(addon ?? {});
    return addon;
  } catch (error) {
    throw new Error(`the addon cannot be loaded: ${messageOf(error)}`, { cause: error });
  }
}

/** `value` as the addon gets it: a function throws after each call. */
const throwing = (value: unknown): unknown =>
  typeof value !== 'function'
    ? value
    : function (this: unknown, ...args: unknown[]): never {
        Reflect.apply(value, this, args);
        throw new Error(DELIBERATE);
      };

/** The addon, whose functions and classes get functions that throw. */
function withThrowing(addon: unknown): unknown {
  const exports = Object.entries(addon ?? {}).map(([name, value]: [string, unknown]) => {
    if (typeof value !== 'function') return [name, value];
    const wrapped = new Proxy(value, {
      apply: (fn, self, args: unknown[]) => Reflect.apply(fn, self, args.map(throwing)),
      construct: (fn, args: unknown[]) => Reflect.construct(fn, args.map(throwing)),
    });
    return [name, wrapped];
  });
  return Object.fromEntries(exports);
}

async function exercise(): Promise<void> {
  const { phase, script } = order;
  const { default: use, afterwards }: Script = await import(pathToFileURL(script).href);
  const hasAfterwards = typeof afterwards === 'function';
  const reached = (): void => tell({ reached: true, hasAfterwards });
  if (order.afterwards) {
    await afterwards?.();
    reached();
    port.close(); // this worker ends by itself
    return;
  }
  if (typeof use !== 'function') {
    throw new Error(`${script} must export a function: export default async (addon) => {}`);
  }
  const addon = load(order.addon);
  if (phase === 'loaded') return reached();
  const used = use(order.ending === 'callback throws' ? withThrowing(addon) : addon);
  if (phase === 'running') reached();
  await used;
  if (phase === 'done') reached();
}

// Keeps this worker alive, until it is told to end.
port.on('message', () => {
  if (order.ending === 'exits') process.exit(0);
  throw new Error(DELIBERATE);
});
exercise().catch((error: unknown) => {
  const failed = messageOf(error);
  if (failed === DELIBERATE) return tell({ reached: true, hasAfterwards: false });
  tell(exported === undefined ? { failed } : { failed, exports: exported });
});
