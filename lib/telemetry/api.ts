/**
 * OpenTelemetry's API, an optional peer. It is looked for when the program has registered a tracer
 * provider or a context manager, which the API keeps under a symbol of `globalThis`; until then this
 * costs the look. Without a provider no span is made, and the context goes along all the same.
 */

import type * as Api from '@opentelemetry/api';
import { require } from '../native/binary/package-files.ts';

/** What the API has registered in this thread, by kind. */
type Registered = Partial<Record<'trace' | 'context' | 'propagation', object>>;

const REGISTERED: unique symbol = Symbol.for('opentelemetry.js.api.1') as never;

let loaded: typeof Api | null | undefined;

function load(): typeof Api | undefined {
  if (loaded === undefined) {
    try {
      loaded = require('@opentelemetry/api') as typeof Api;
    } catch {
      loaded = null; // not installed where this package, or the bundle that it is in, looks
    }
  }
  return loaded ?? undefined;
}

const registered = (): Registered | undefined =>
  (globalThis as { [REGISTERED]?: Registered })[REGISTERED];

/** The API; undefined while this thread has neither a tracer provider nor a context manager. */
export function telemetry(): typeof Api | undefined {
  const { trace, context } = registered() ?? {};
  return trace === undefined && context === undefined ? undefined : load();
}

/** What keeps the active context of this thread; undefined if the program has registered none. */
export const contextManager = (): Api.ContextManager | undefined =>
  registered()?.context as Api.ContextManager | undefined;
