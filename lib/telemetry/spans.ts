/** The spans of a call: its life where it was made, and each attempt where it runs. */

import type * as Api from '@opentelemetry/api';
import { attempt, isError, isThenable, messageOf } from '../base/thrown-value.ts';
import { fromText, telemetry, toText } from './context.ts';

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
