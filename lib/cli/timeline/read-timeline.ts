/** Reads the JSON of a timeline, or of a Chrome trace that was made of one. */

import { readFileSync } from 'node:fs';
import { messageOf } from '../../base/thrown-value.ts';
import { type ChromeTrace, fromChromeTrace, type Timeline } from '../../events/timeline/events.ts';
import { CommandError } from '../base/command.ts';

export type TimelineData = Omit<Timeline, 'toChromeTrace'>;

const EXPECTED =
  'Expected the JSON of coord.timeline(), or of its toChromeTrace(), as JSON.stringify writes it';

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function isEvent(value: unknown): boolean {
  return isObject(value) && Number.isFinite(value['at']) && typeof value['type'] === 'string';
}

function parse(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new CommandError(`Cannot read '${path}': ${messageOf(error)}`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CommandError(`'${path}' is not JSON: ${messageOf(error)}. ${EXPECTED}`);
  }
}

/** @throws CommandError: the file is missing, is not JSON, or is no timeline */
export function readTimeline(path: string): TimelineData {
  const json = parse(path);
  const refuse = (why: string): CommandError => new CommandError(`'${path}' ${why}. ${EXPECTED}`);
  if (!isObject(json)) throw refuse('is no timeline');
  const isTrace = Array.isArray(json['traceEvents']);
  const data: unknown = isTrace ? fromChromeTrace(json as ChromeTrace) : json;
  if (data === undefined) throw refuse('is a Chrome trace without the events of a coordinator');
  if (!isObject(data) || !Array.isArray(data['events'])) throw refuse('is no timeline');
  const { version, coordinator, startedAt, events } = data;
  if (version !== 1) {
    throw refuse(`is a timeline of version ${JSON.stringify(version)}; this allstop reads 1`);
  }
  if (typeof coordinator !== 'string' || Number.isNaN(Date.parse(String(startedAt)))) {
    throw refuse("is no timeline: its 'coordinator' or 'startedAt' is missing");
  }
  const bad = events.findIndex((event) => !isEvent(event));
  if (bad !== -1) throw refuse(`is no timeline: event ${bad} has no 'at' and 'type'`);
  return { dropped: 0, ...data } as TimelineData;
}
