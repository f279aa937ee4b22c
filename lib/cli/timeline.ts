/**
 * The page of a timeline. It is drawn here, as HTML with positions in percent, so that the page
 * needs no script, and its text stays readable at any width.
 */

import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { scaleLinear } from 'd3-scale';
import { messageOf } from '../base/thrown-value.ts';
import { counted, fitTerminal, printable } from '../coordinator/words.ts';
import {
  type ChromeTrace,
  fromChromeTrace,
  type Lane,
  lanesOf,
  latenciesOf,
  type StopLatency,
  type Timeline,
  type TimelineEvent,
} from '../events/timeline.ts';
import { CommandError, type CommandResult, parseJson } from './base/command.ts';

const ENTITIES: Record<string, string> = {
  '&': 'amp',
  '<': 'lt',
  '>': 'gt',
  '"': 'quot',
  "'": '#39',
};

/** How the attempt of a call has ended, by the event that ends it first. */
const HOW_ENDED: Readonly<Record<string, string>> = {
  'call-ended': '',
  'call-lost': ', lost with its worker',
  'call-run-again': ', failed and run again',
};

const escape = (text: string): string => text.replace(/[&<>"']/g, (each) => `&${ENTITIES[each]};`);

/** Milliseconds, for people. */
function duration(ms: number): string {
  const digits = Math.abs(ms) < 10 ? 2 : Math.abs(ms) < 100 ? 1 : 0;
  return ms < 10_000 ? `${ms.toFixed(digits)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

type Chart = {
  /** What stands at a time, or from there `to` another. */
  draw: (kind: string, title: string, at: number, to?: number) => string;
  end: number;
  /** When the newest stop was requested; undefined: never. */
  stopAt: number | undefined;
};

function row(name: string, note: string, content: string, kind = ''): string {
  const label = `<div class="name" title="${escape(name)}">${escape(name)} <small>${escape(note)}</small></div>`;
  return `<div class="row ${kind}">${label}<div class="track">${content}</div></div>`;
}

function laneRow(lane: Lane, { draw, end, stopAt }: Chart): string {
  const { thread, kind, startedAt, begunAt, endedAt, seen, stragglerAt } = lane;
  const parts: string[] = [];
  const isRegistered = startedAt !== undefined || endedAt !== undefined;
  const [from, to] = [startedAt ?? 0, endedAt ?? end];
  const title = `${thread}: from ${duration(from)} to ${endedAt === undefined ? 'after the end' : duration(to)}`;
  if (kind === 'hook') {
    // Alive from the stop on, it waits for the hooks that run before it.
    const begun = begunAt ?? (endedAt === undefined ? to : from);
    parts.push(draw('bar waits', `${thread}: waits for its turn`, from, begun));
    if (begun < to) parts.push(draw('bar hook', `${thread}: ${duration(to - begun)}`, begun, to));
  } else if (isRegistered) {
    const isCut = stopAt !== undefined && stopAt > from && stopAt < to;
    parts.push(draw('bar', title, from, isCut ? stopAt : to));
    if (isCut) parts.push(draw('bar after', title, stopAt, to));
  }
  for (const { stop, at } of seen) {
    parts.push(draw('mark', `saw stop ${stop} at ${duration(at)}`, at));
  }
  return row(thread, kind, parts.join(''), stragglerAt === undefined ? '' : 'late');
}

/** One attempt of a call: from when its worker has it. */
type Attempt = { event: TimelineEvent; to: number; how: string };

function attemptsOf(events: readonly TimelineEvent[], end: number): Attempt[] {
  const started = new Map<number, TimelineEvent>();
  const attempts: Attempt[] = [];
  for (const event of events) {
    const { type, call } = event;
    if (call === undefined) continue;
    if (type === 'call-started') started.set(call, event);
    const begun = started.get(call);
    const how = HOW_ENDED[type];
    if (begun === undefined || how === undefined) continue;
    attempts.push({ event: begun, to: event.at, how });
    started.delete(call);
  }
  for (const event of started.values()) attempts.push({ event, to: end, how: ', not ended' });
  return attempts.toSorted((a, b) => a.event.at - b.event.at);
}

/** A lane for each worker, with the calls that it had, in as few rows as they fit in without overlapping. */
function workerRows(events: readonly TimelineEvent[], { draw, end }: Chart): string[] {
  const byWorker = new Map<number, { freeFrom: number; parts: string[] }[]>();
  for (const { event, to, how } of attemptsOf(events, end)) {
    const { at, worker = -1, function: name = 'call' } = event;
    const rows = byWorker.get(worker) ?? [];
    byWorker.set(worker, rows);
    let found = rows.find(({ freeFrom }) => freeFrom <= at);
    if (found === undefined) rows.push((found = { freeFrom: 0, parts: [] }));
    found.freeFrom = to;
    found.parts.push(draw('bar call', `${name}: ${duration(to - at)}${how}`, at, to));
  }
  return [...byWorker]
    .toSorted(([a], [b]) => a - b)
    .flatMap(([worker, rows]) =>
      rows.map(({ parts }, index) =>
        row(worker < 0 ? 'calls' : `worker:${worker}`, index === 0 ? 'calls' : '', parts.join('')),
      ),
    );
}

function queueRows(events: readonly TimelineEvent[], { draw }: Chart): string[] {
  const marks = new Map<string, string>();
  for (const { type, at, queue = '' } of events) {
    if (type !== 'queue-full') continue;
    const mark = draw('mark full', `full at ${duration(at)}`, at);
    marks.set(queue, (marks.get(queue) ?? '') + mark);
  }
  return [...marks].map(([queue, all]) => row(queue, 'queue, when full', all));
}

function latencyTable(latencies: readonly StopLatency[]): string {
  const longest = latencies.reduce(
    (most, { endedMs, seenMs }) => Math.max(most, endedMs ?? seenMs ?? 0),
    1e-6,
  );
  const rows = latencies.map(({ thread, kind, seenMs, endedMs, isStraggler }) => {
    const late = isStraggler ? ' late' : '';
    const seen = seenMs === undefined ? '–' : duration(seenMs);
    const isJsThread = kind === 'thread';
    const ended = endedMs !== undefined ? duration(endedMs) : isJsThread ? '–' : 'still running';
    const width =
      endedMs === undefined && !isJsThread ? 100 : (100 * (endedMs ?? seenMs ?? 0)) / longest;
    return `<tr><td class="${late}">${escape(thread)} <small>${escape(kind)}</small></td>
<td class="number">${seen}</td><td class="number${late}">${ended}${isStraggler ? ', left behind' : ''}</td>
<td class="graph${late}"><div style="width:${Math.min(100, width).toFixed(1)}%"></div></td></tr>`;
  });
  return `<h2>From the stop until each thread saw it and ended</h2>
<div class="chart"><table><thead><tr><th>thread</th><th class="number">saw it after</th>
<th class="number">ended after</th><th></th></tr></thead><tbody>${rows.join('\n')}</tbody></table></div>`;
}

/** What the colours and signs mean, by their class. */
const LEGEND: ReadonlyMap<string, string> = new Map([
  ['bar', 'running'],
  ['bar after', 'running after the stop'],
  ['bar waits', 'hook, waits for its turn'],
  ['bar hook', 'hook, runs'],
  ['row late', 'left behind by a join'],
  ['bar call', 'call of a pool'],
  ['stop', 'stop requested'],
  ['mark', 'saw the stop'],
  ['mark full', 'queue was full'],
]);

/** The legend of what `drawn` has. */
const legendOf = (drawn: string): string =>
  [...LEGEND]
    .filter(([sample]) => drawn.includes(`class="${sample}"`))
    .map(([sample, words]) => `<span><i class="${sample}"></i>${words}</span>`)
    .join('\n');

function pageOf({ coordinator, startedAt, dropped, events }: TimelineData): string {
  const last = events.reduce((latest, { at }) => Math.max(latest, at), 0);
  const scale = scaleLinear([0, last === 0 ? 1 : last * 1.02], [0, 100]);
  const stops = events.filter(({ type }) => type === 'stop-requested' || type === 'stop-cleared');
  const stop = stops.findLast(({ type }) => type === 'stop-requested');
  const draw: Chart['draw'] = (kind, title, at, to) => {
    const width = to === undefined ? '' : `;width:${(scale(to) - scale(at)).toFixed(3)}%`;
    const style = `left:${scale(at).toFixed(3)}%${width}`;
    return `<div class="${kind}" style="${style}" title="${escape(title)}"></div>`;
  };
  const chart: Chart = { draw, end: last, stopAt: stop?.at };
  const rows = [
    ...lanesOf(events).map((lane) => laneRow(lane, chart)),
    ...workerRows(events, chart),
    ...queueRows(events, chart),
  ];
  const ticks = scale.ticks(6).map((at) => {
    const words = last < 10_000 ? `${at} ms` : `${at / 1_000} s`;
    const label = scale(at) > 97 ? '' : words; // there it would be cut
    return `<div class="tick" style="left:${scale(at).toFixed(3)}%"><span>${label}</span></div>`;
  });
  const lines = stops.map(({ type, at, thread }) =>
    type === 'stop-requested'
      ? draw('stop', `stop requested${thread === undefined ? '' : ` by ${thread}`}`, at)
      : draw('stop cleared', 'stop cleared', at),
  );
  const by = stop?.thread === undefined ? '' : ` by the thread '${stop.thread}'`;
  const how = stop?.via === undefined ? '' : ` (${stop.via})`;
  const stopped =
    stop === undefined
      ? 'No stop was requested.'
      : `A stop was requested after ${duration(stop.at)}${by}${how}.`;
  const latencies = latenciesOf(events);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Timeline of ${escape(coordinator)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Timeline of the coordinator '${escape(coordinator)}'</h1>
<p>${escape(new Date(startedAt).toISOString())}, ${events.length} events over ${duration(last)}${dropped > 0 ? `; ${dropped} older events were forgotten` : ''}.</p>
<p>${escape(stopped)}</p>
${stop?.error === undefined ? '' : `<p class="error">${escape(stop.error)}</p>\n`}<div class="chart"><div class="rows">
<div class="over"><div></div><div>${ticks.join('')}</div></div>
${rows.join('\n')}
<div class="over"><div></div><div>${lines.join('')}</div></div>
</div></div>
<div class="legend">${legendOf([...rows, ...lines].join(''))}</div>
${latencies.length > 0 ? latencyTable(latencies) : ''}
</body>
</html>
`;
}

/** The style sheet of the page: light and dark, narrow and wide. */
const STYLE = `
:root {
  color-scheme: light dark;
  --paper: light-dark(#fcfcfb, #16181b); --ink: light-dark(#1d2125, #e4e6e8);
  --faint: light-dark(#6a7178, #9aa1a8); --grid: light-dark(#e3e5e8, #2c3035);
  --life: light-dark(#9db7d5, #3d5c80); --seen: light-dark(#33608f, #86b4e6);
  --stop: light-dark(#b4690e, #f0a94a); --late: light-dark(#c62f2f, #ff6b66);
  --call: light-dark(#a5c9ae, #3d6b4a); --hook: light-dark(#a98bd0, #8467b0);
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(0.75rem, 3vw, 2.5rem); max-width: 90rem;
  background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2rem 0 0.5rem; }
p { margin: 0.25rem 0; color: var(--faint); } p.error { color: var(--late); }
.chart { overflow-x: auto; margin-top: 1rem; }
.rows { position: relative; min-width: 34rem; padding-bottom: 1.6rem; }
.row { display: grid; grid-template-columns: clamp(8rem, 20%, 16rem) 1fr; height: 1.9rem;
  align-items: center; border-bottom: 1px solid var(--grid); }
.name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; padding-right: 0.75rem; }
.name small { color: var(--faint); }
.track { position: relative; height: 100%; }
.over { position: absolute; inset: 0; display: grid; pointer-events: none;
  grid-template-columns: clamp(8rem, 20%, 16rem) 1fr; }
.over > div { position: relative; }
.tick { position: absolute; top: 0; bottom: 1.4rem; width: 1px; background: var(--grid); }
.tick span { position: absolute; top: 100%; left: 0; transform: translateX(-50%);
  font-size: 0.75rem; color: var(--faint); white-space: nowrap; padding-top: 0.2rem; }
.bar { position: absolute; top: 26%; height: 48%; min-width: 2px; border-radius: 2px;
  background: var(--life); }
.bar.after { background: color-mix(in srgb, var(--stop) 55%, var(--life)); }
.bar.call { background: var(--call); box-shadow: inset -1px 0 var(--paper); }
.bar.hook { background: var(--hook); }
.bar.waits { top: 44%; height: 12%; background: var(--hook); opacity: 0.45; }
.late .bar.after { background: var(--late); } .late .name, td.late { color: var(--late); }
.mark { position: absolute; width: 3px; margin-left: -1px; top: 12%; height: 76%;
  background: var(--seen); border-radius: 1px; }
.mark.full { background: var(--faint); }
.stop { position: absolute; top: 0; bottom: 1.4rem; width: 2px; background: var(--stop); }
.stop.cleared { background: none; border-left: 2px dashed var(--stop); }
.legend { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; margin-top: 0.6rem;
  font-size: 0.85rem; color: var(--faint); }
.legend i { position: static; display: inline-block; width: 1rem; height: 0.7rem;
  margin: 0 0.35rem 0 0; vertical-align: baseline; }
.legend i.row { background: var(--late); border-radius: 2px; }
.legend i.waits { height: 0.2rem; vertical-align: 0.25rem; }
.legend i.stop, .legend i.mark { width: 3px; }
table { border-collapse: collapse; width: 100%; max-width: 60rem; }
th, td { text-align: left; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid var(--grid);
  white-space: nowrap; }
th { font-weight: 600; color: var(--faint); } td.number, th.number { text-align: right; }
td.graph { width: 45%; min-width: 3rem; } td.graph div { height: 0.6rem; border-radius: 2px;
  min-width: 2px; background: var(--life); } td.graph.late div { background: var(--late); }
@media (max-width: 40rem) {
  body { font-size: 13px; }
  .rows { min-width: 0; }
  .row, .over { grid-template-columns: 7rem 1fr; }
  .over .tick:nth-child(even) span { display: none; }
  th, td { white-space: normal; padding-right: 0.4rem; overflow-wrap: anywhere; }
  td.graph { width: 20%; }
}
`;

// Writes the page of a timeline, and says what is on it.

/** Also by a link of either kind. */
function isSameFile(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) =>
    statSync(path, { bigint: true, throwIfNoEntry: false }),
  );
  return a !== undefined && a.dev === b?.dev && a.ino === b.ino;
}

export function writePage(file: string, output: string): CommandResult {
  const timeline = readTimeline(file);
  if (isSameFile(file, output)) {
    throw new CommandError(`'${output}' is the timeline itself: give the page another name`);
  }
  const page = pageOf(timeline);
  try {
    writeFileSync(output, page);
  } catch (error) {
    throw new CommandError(`Cannot write '${output}': ${messageOf(error)}`);
  }
  const threads = lanesOf(timeline.events).length;
  const events = timeline.events.length;
  return {
    text: `${fitTerminal([printable(`${output}: ${counted(events, 'event')} of ${counted(threads, 'thread')}`)])}\n`,
    json: { output, coordinator: timeline.coordinator, events, threads },
  };
}

// Reads the JSON of a timeline, or of a Chrome trace that was made of one.

type TimelineData = Omit<Timeline, 'toChromeTrace'>;

const EXPECTED =
  'Expected the JSON of coord.timeline(), or of its toChromeTrace(), as JSON.stringify writes it';

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The fields of an event: all but these two may be left out. */
const REQUIRED = ['at', 'type'];
const NUMBERS = ['at', 'id', 'stop', 'call', 'worker'];
const TEXTS = ['type', 'thread', 'kind', 'via', 'error', 'queue', 'function'];

/** Numbers are such that what is drawn stays finite: less than 30 years, in milliseconds. */
const isRight = (value: unknown, name: string): boolean =>
  NUMBERS.includes(name)
    ? typeof value === 'number' && Math.abs(value) < 1e12
    : typeof value === 'string';

/** @returns the first field of `event` that is missing, or not what it should be */
function wrongField(event: unknown): string | undefined {
  const fields = isObject(event) ? event : {};
  return [...NUMBERS, ...TEXTS].find((name) => {
    const isLeftOut = !REQUIRED.includes(name) && fields[name] === undefined;
    return !isLeftOut && !isRight(fields[name], name);
  });
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new CommandError(`Cannot read '${path}': ${messageOf(error)}`);
  }
}

/** @throws CommandError: the file is missing, is not JSON, or is no timeline */
function readTimeline(path: string): TimelineData {
  const refuse = (why: string): CommandError => new CommandError(`'${path}' ${why}. ${EXPECTED}`);
  let json: unknown;
  try {
    json = parseJson(textOf(path));
  } catch (error) {
    throw error instanceof CommandError ? error : refuse(`is not JSON: ${messageOf(error)}`);
  }
  if (!isObject(json)) throw refuse('is no timeline');
  const isTrace = Array.isArray(json['traceEvents']);
  const data: unknown = isTrace ? fromChromeTrace(json as ChromeTrace) : json;
  if (data === undefined) throw refuse('is a Chrome trace without the events of a coordinator');
  if (!isObject(data) || !Array.isArray(data['events'])) throw refuse('is no timeline');
  const { version, coordinator, startedAt, dropped = 0, events } = data;
  if (version !== 1) {
    throw refuse(`is a timeline of version ${JSON.stringify(version)}; this allstop reads 1`);
  }
  const isDate = typeof startedAt === 'string' && !Number.isNaN(Date.parse(startedAt));
  if (typeof coordinator !== 'string' || !isDate || typeof dropped !== 'number') {
    throw refuse("is no timeline: 'coordinator', 'startedAt' or 'dropped' is missing or wrong");
  }
  for (const [index, event] of events.entries()) {
    const wrong = wrongField(event);
    if (wrong === undefined) continue;
    throw refuse(`is no timeline: the '${wrong}' of event ${index} is wrong`);
  }
  return { ...data, dropped } as TimelineData;
}
