/** The spans of a call: its life where it was made, and each attempt where it runs. */

import type * as Api from '@opentelemetry/api';
import { workerThreads } from '../base/builtins.ts';
import { attempt, isError, isThenable, messageOf, textOf } from '../base/thrown-value.ts';
import { require } from '../native/binary/package-files.ts';

const TRACER = 'allstop';

function end(api: typeof Api, span: Api.Span, failure: { error: unknown } | undefined): void {
  if (failure !== undefined) {
    const { error } = failure;
    const message = messageOf(error);
    attempt(() => span.recordException(isError(error) ? error : message));
    span.setStatus({ code: api.SpanStatusCode.ERROR, message });
  }
  span.end();
}

/** The context that is active for the caller; undefined if nothing is traced. */
export const activeContext = (): unknown => telemetry()?.context.active();

/** The span of a call, from when it is made until its value has settled. */
export class CallSpan {
  /** The context of this span, for `runAttempt` in the worker. */
  readonly text: string | undefined;
  readonly #api: typeof Api;
  readonly #span: Api.Span;
  #hasEnded = false;

  private constructor(api: typeof Api, span: Api.Span, context: Api.Context) {
    this.#api = api;
    this.#span = span;
    this.text = toText(api, api.trace.setSpan(context, span));
  }

  /**
   * @param parent - of `activeContext`, when the call was made
   * @returns undefined if nothing is traced
   */
  static begin(
    name: string,
    parent: unknown,
    attributes: Record<string, string | number>,
  ): CallSpan | undefined {
    const api = telemetry();
    if (api === undefined) return undefined;
    const context = (parent as Api.Context | undefined) ?? api.context.active();
    const span = api.trace.getTracer(TRACER).startSpan(name, { attributes }, context);
    return new CallSpan(api, span, context);
  }

  /** What has become of the call: it is queued, an attempt has started, or was lost. */
  note(event: string): void {
    this.#span.addEvent(event);
  }

  end(attempts: number, failure: { error: unknown } | undefined): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#span.setAttribute('allstop.attempts', attempts);
    end(this.#api, this.#span, failure);
  }
}

/** Runs an attempt in a span of its own, whose parent is the call's. `text`: of its CallSpan. */
export function runAttempt(
  name: string,
  text: string,
  attributes: Record<string, string | number>,
  run: () => unknown,
): unknown {
  const api = telemetry();
  if (api === undefined) return run();
  const parent = fromText(api, text);
  const span = api.trace.getTracer(TRACER).startSpan(`attempt ${name}`, { attributes }, parent);
  try {
    const value = api.context.with(api.trace.setSpan(parent, span), run);
    if (!isThenable(value)) {
      end(api, span, undefined);
      return value;
    }
    return Promise.resolve(value).then(
      (result) => {
        end(api, span, undefined);
        return result;
      },
      (error: unknown) => {
        end(api, span, { error });
        throw error;
      },
    );
  } catch (error) {
    end(api, span, { error });
    throw error;
  }
}

// A context of OpenTelemetry as text, for another thread or process: the headers of the registered
// propagator as JSON, and `traceparent` of W3C Trace Context if that writes none.

// OpenTelemetry's API, an optional peer. It is looked for when the program has registered a tracer
// provider or a context manager, which the API keeps under a symbol of `globalThis`; until then this
// costs the look. Without a provider no span is made, and the context goes along all the same.

/** What the API has registered in this thread, by kind. */
type Registered = { trace?: object; context?: Api.ContextManager; propagation?: object };

const REGISTERED = Symbol.for('opentelemetry.js.api.1');

let loaded: typeof Api | null | undefined;

function load(): typeof Api | undefined {
  // Null: not installed where this package, or the bundle that it is in, looks.
  if (loaded === undefined) loaded = attempt(() => require('@opentelemetry/api')) ?? null;
  return loaded ?? undefined;
}

const registered = (): Registered | undefined => Reflect.get(globalThis, REGISTERED);

/** The API; undefined while this thread has neither a tracer provider nor a context manager. */
function telemetry(): typeof Api | undefined {
  const { trace, context } = registered() ?? {};
  return trace === undefined && context === undefined ? undefined : load();
}

type Headers = Record<string, string>;

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

function toText(
  { isSpanContextValid, propagation, trace }: typeof Api,
  context: Api.Context,
): string | undefined {
  const headers: Headers = {};
  propagation.inject(context, headers);
  const span = trace.getSpanContext(context);
  if (Object.keys(headers).length === 0 && span !== undefined && isSpanContextValid(span)) {
    const flags = span.traceFlags.toString(16).padStart(2, '0');
    headers['traceparent'] = `00-${span.traceId}-${span.spanId}-${flags}`;
  }
  return Object.keys(headers).length === 0 ? undefined : JSON.stringify(headers);
}

/** The root context if the text cannot be read: it may come from another machine. */
function fromText(
  { isSpanContextValid, propagation, ROOT_CONTEXT, trace }: typeof Api,
  text: string,
): Api.Context {
  const headers = attempt((): Headers => JSON.parse(text));
  if (headers === undefined) return ROOT_CONTEXT;
  const context = propagation.extract(ROOT_CONTEXT, headers);
  if (trace.getSpanContext(context) !== undefined) return context;
  const [, traceId, spanId, flags] = TRACEPARENT.exec(String(headers?.['traceparent'])) ?? [];
  if (traceId === undefined || spanId === undefined) return context;
  const traceFlags = Number.parseInt(flags ?? '', 16);
  const parent = { traceId, spanId, traceFlags, isRemote: true };
  return isSpanContextValid(parent) ? trace.setSpanContext(context, parent) : context;
}

// The context in which a worker was spawned, or a process forked, as the root context there: active
// wherever the program has made no other active.

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
  workerThreads().setEnvironmentData(KEY, text);
  try {
    return make();
  } finally {
    workerThreads().setEnvironmentData(KEY, undefined as never);
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
    inherited ??= textOf(workerThreads().getEnvironmentData(KEY));
    if (inherited !== undefined) workerThreads().setEnvironmentData(KEY, undefined as never);
  }
  if (inherited === undefined) return;
  const api = telemetry();
  if (api === undefined) return; // the provider may come later
  const root = fromText(api, inherited);
  inherited = undefined;
  const manager = registered()?.context;
  if (manager === undefined) return;
  const active = manager.active.bind(manager);
  manager.active = () => {
    const own = active();
    return own === api.ROOT_CONTEXT ? root : own;
  };
}
