/** Requests of this JavaScript thread: a stop, an error, and what another process has recorded. */

import { logReport } from '../events/spine.ts';
import { type RequesterOptions, STOP_OUTCOMES, type StopOutcome } from '../native/binding.ts';
import { encode } from '../record/encoded-error.ts';
import { type Carried, echoes } from '../record/error-identity.ts';
import type { Attachment } from './attachment.ts';

/** Who requests a stop, and how. */
export type RequestOptions = RequesterOptions & {
  /** Whether an error that is refused (after a join) can be thrown to a caller; default true. */
  hasCaller?: boolean;
  /** Whether a thread threw the error: then it is written at the end if nobody was given it. */
  isThrown?: boolean;
};

/** The ids of an error, and of the stops and errors that it echoes. */
type Ids = { readonly ids: string[]; readonly abortIds: string[] };

const NO_IDS: Ids = { ids: [], abortIds: [] };

/** Requests a stop without an error. */
export function requestPlainStop(attachment: Attachment, options: RequestOptions): StopOutcome {
  return request(attachment, null, options, NO_IDS);
}

/** Requests a stop with an error, which may be any value. */
export function report(
  attachment: Attachment,
  error: unknown,
  options: RequestOptions,
): StopOutcome {
  if (attachment.errors.isExpected(error)) return 'echo';
  const { carried, bytes, ...ids } = encoded(attachment, error);
  const outcome = request(attachment, bytes, options, ids);
  if (outcome === 'stopped' || outcome === 'suppressed') attachment.errors.hold(carried);
  return outcome;
}

/**
 * Records an error beside the stop, which it does not replace. `givenBefore`: the errors that the
 * program had been given when the function began that threw it.
 */
export function reportBeside(
  attachment: Attachment,
  error: unknown,
  from: RequesterOptions,
  givenBefore: number,
): void {
  const { carried, bytes, ...ids } = encoded(attachment, error);
  attachment.errors.hold(carried);
  beside(attachment, bytes, from, ids, true, givenBefore);
}

/** Requests the stop that another process has recorded, under the same record id. */
export function relay(
  attachment: Attachment,
  error: Uint8Array | null,
  options: RequestOptions,
  recordId: string,
): StopOutcome {
  const ids = error === null ? NO_IDS : idsOf(attachment, error);
  return request(attachment, error, { ...options, hasCaller: false }, ids, recordId);
}

/** Records the error that another process has recorded beside its stop. */
export function relayReport(
  attachment: Attachment,
  error: Uint8Array,
  from: RequesterOptions,
  isThrown: boolean,
): void {
  beside(attachment, error, from, idsOf(attachment, error), isThrown);
}

function idsOf({ errors }: Attachment, bytes: Uint8Array): Ids {
  const { id, value } = errors.of(bytes);
  const { ids, abortIds } = echoes(value);
  return { ids: [id, ...ids], abortIds };
}

function encoded(
  { native, errors }: Attachment,
  error: unknown,
): Ids & { carried: Carried; bytes: Uint8Array } {
  const { carried, bytes } = encode(error);
  const { ids, abortIds, bare } = echoes(error);
  if (bare.length > 0) {
    // Primitives have no id: a value equal to the recorded one is an echo.
    const record = native.stop();
    const known = record?.error ? errors.of(record.error) : undefined;
    if (record && known && bare.some((value) => Object.is(value, known.value))) {
      ids.push(record.id);
    }
  }
  return { carried, bytes, ids: [carried.id, ...ids], abortIds };
}

function request(
  attachment: Attachment,
  bytes: Uint8Array | null,
  options: RequestOptions,
  { ids, abortIds }: Ids,
  recordId?: string,
): StopOutcome {
  const { native } = attachment;
  const { hasCaller = true, isThrown = false } = options;
  const code = native.requestStop(bytes, options, ids, abortIds, hasCaller, isThrown, recordId);
  return recorded(attachment, code, options, bytes);
}

function beside(
  attachment: Attachment,
  bytes: Uint8Array,
  from: RequesterOptions,
  { ids, abortIds }: Ids,
  isThrown: boolean,
  givenBefore?: number,
): void {
  const code = attachment.native.report(bytes, from, ids, abortIds, isThrown, givenBefore);
  recorded(attachment, code, from, bytes);
}

function recorded(
  attachment: Attachment,
  code: number,
  from: RequesterOptions,
  bytes: Uint8Array | null,
): StopOutcome {
  const outcome = STOP_OUTCOMES[code] as StopOutcome;
  if (bytes !== null) logReport(attachment, outcome, from, bytes);
  attachment.catchUp();
  return outcome;
}

/** The stack below `caller`; '' if the runtime or the program's stack formatter gives none. */
export function callSite(caller: (...args: never[]) => unknown): string {
  try {
    const holder: { stack?: unknown } = {};
    Error.captureStackTrace(holder, caller);
    // Without the first line, the error's title. `Error.prepareStackTrace` may return any value.
    const { stack } = holder;
    return typeof stack === 'string' ? stack.split('\n').slice(1).join('\n') : '';
  } catch {
    return '';
  }
}
