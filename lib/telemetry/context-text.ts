/**
 * A context of OpenTelemetry as text, for another thread or process: the headers of the registered
 * propagator as JSON, and `traceparent` of W3C Trace Context if that writes none.
 */

import type * as Api from '@opentelemetry/api';

type Headers = Record<string, string>;

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

export function toText(
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
export function fromText(
  { isSpanContextValid, propagation, ROOT_CONTEXT, trace }: typeof Api,
  text: string,
): Api.Context {
  let headers: Headers;
  try {
    headers = JSON.parse(text) as Headers;
  } catch {
    return ROOT_CONTEXT;
  }
  const context = propagation.extract(ROOT_CONTEXT, headers);
  if (trace.getSpanContext(context) !== undefined) return context;
  const [, traceId, spanId, flags] = TRACEPARENT.exec(String(headers?.['traceparent'])) ?? [];
  if (traceId === undefined || spanId === undefined) return context;
  const traceFlags = Number.parseInt(flags as string, 16);
  const parent = { traceId, spanId, traceFlags, isRemote: true };
  return isSpanContextValid(parent) ? trace.setSpanContext(context, parent) : context;
}
