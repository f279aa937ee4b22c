/**
 * The context in which a worker was spawned, or a process forked, as the root context there: active
 * wherever the program has made no other active.
 */

import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import { contextManager, telemetry } from './api.ts';
import { fromText, toText } from './context-text.ts';

/** Workers that are made meanwhile find the text under this key of the environment data. */
const KEY = 'allstop:context';

/** The active context as text; undefined if nothing is traced, or no span is active. */
export function activeText(): string | undefined {
  const api = telemetry();
  return api === undefined ? undefined : toText(api, api.context.active());
}

/** Calls `make`, which makes a Worker, and gives that the active context. */
export function handOver<T>(make: () => T): T {
  const text = activeText();
  if (text === undefined) return make();
  setEnvironmentData(KEY, text);
  try {
    return make();
  } finally {
    setEnvironmentData(KEY, undefined as never);
  }
}

let inherited: string | undefined;
let isLooked = false;

/** From now on this process has this context as its root, as soon as it has a provider. */
export function inheritAs(text: string | undefined): void {
  inherited = text;
}

/** Makes the inherited context the root context of this thread, if there is one. */
export function adoptInherited(): void {
  if (!isLooked) {
    isLooked = true;
    inherited ??= getEnvironmentData(KEY) as unknown as string | undefined;
    if (inherited !== undefined) setEnvironmentData(KEY, undefined as never);
  }
  if (inherited === undefined) return;
  const api = telemetry();
  if (api === undefined) return; // the provider may come later
  const root = fromText(api, inherited);
  inherited = undefined;
  const manager = contextManager();
  if (manager === undefined) return;
  const active = manager.active.bind(manager);
  manager.active = () => {
    const own = active();
    return own === api.ROOT_CONTEXT ? root : own;
  };
}
