/**
 * Draws what happens to a cluster in three situations, from simulated histories:
 *
 *   node test/simulation/picture.mjs     docs/cluster/takeover.svg, rolling-update.svg, partition.svg
 *
 * A lane for each process: dark where a program holds the cluster, light where a worker serves; a
 * tick for each call that a program has got the result of, a cross where a process dies.
 */

import { mkdirSync, writeFileSync } from 'node:fs';
import { build } from './build.mjs';
import { load, simulate } from './cluster.mjs';

const [LEFT, WIDTH, LANE, TOP] = [92, 860, 26, 34];

const node = (name, at, more) => ({ kind: 'node', name, at, slots: 2, ...more });
const program = (name, at, untilMs, more) => ({
  kind: 'program',
  name,
  at,
  works: [{ kind: 'hold', at: 0, untilMs }],
  ...more,
});
const one = { servers: 1, replicas: 1 };
const cut = (from, to) => ({ kind: 'cut', at: 10_000, from, to, ms: 15_000, isOneWay: false });

const scenes = {
  takeover: {
    title: "Two supervised programs of one name, onHeld: 'standBy'; the holder is killed",
    untilMs: 40_000,
    ...one,
    steps: [
      node('worker a', 0),
      node('worker b', 300),
      program('program 1', 0, 60_000, { onHeld: 'standBy' }),
      program('program 2', 2_000, 60_000, { onHeld: 'standBy' }),
      { kind: 'crash', at: 12_000, name: 'program 1', ms: 12_000 },
    ],
  },
  'rolling-update': {
    title: 'A rolling update with surge: the new ones start, then the old ones are asked to leave',
    untilMs: 30_000,
    ...one,
    steps: [
      node('old worker a', 0),
      node('old worker b', 300),
      program('old program', 0, 15_000, { onHeld: 'standBy' }),
      node('new worker a', 8_000),
      { kind: 'leave', at: 10_000, name: 'old worker a' },
      node('new worker b', 11_000),
      { kind: 'leave', at: 13_000, name: 'old worker b' },
      program('new program', 9_000, 45_000, { onHeld: 'standBy' }),
    ],
  },
  partition: {
    title: 'Three servers, of which s1 is cut off from the others from 10 s to 25 s',
    untilMs: 40_000,
    servers: 3,
    replicas: 3,
    steps: [
      node('worker s1', 0, { servers: ['s1'] }),
      node('worker s2', 300, { servers: ['s2'] }),
      program('older, s1', 0, 60_000, { servers: ['s1'] }),
      program('newer, s2', 13_000, 60_000, { servers: ['s2', 's3'] }),
      cut('s1', 's2'),
      cut('s1', 's3'),
    ],
  },
};

const nameOf = (place) => place.split('/')[0].split('~')[0];

/** [from, to, class] of each lane: when a program has the cluster, when a worker serves. */
function barsOf(history, untilMs) {
  const bars = new Map();
  const open = new Map();
  const end = (name, at) => {
    const begun = open.get(name);
    if (begun !== undefined) bars.get(name).push([...begun, at]);
    open.delete(name);
  };
  const begin = (name, kind, at) => {
    if (!bars.has(name)) bars.set(name, []);
    if (!open.has(name)) open.set(name, [kind, at]);
  };
  for (const { at, place, what, name, by, subject, how } of history) {
    if (at > untilMs) break;
    if (what === 'stored' && subject.endsWith('.run')) begin(nameOf(by), 'holds', at);
    if (what === 'serving') begin(nameOf(place), 'serves', at);
    if (what === 'session-over') end(nameOf(place), at);
    if (what === 'dies' || what === 'exits') end(nameOf(name), at);
    if (what === 'settles' && how === 'FailedPreconditionError') end(nameOf(place), at);
  }
  for (const name of bars.keys()) end(name, untilMs);
  return bars;
}

function draw({ title, untilMs, steps }, history) {
  const lanes = steps
    .filter(({ kind }) => ['node', 'program'].includes(kind))
    .map(({ name }) => name);
  const x = (at) => (LEFT + (Math.min(at, untilMs) / untilMs) * (WIDTH - LEFT - 12)).toFixed(1);
  const y = (name) => TOP + lanes.indexOf(name) * LANE;
  const height = TOP + lanes.length * LANE + 26;
  const parts = [];
  const bars = barsOf(history, untilMs);
  for (const { kind, at, ms } of steps) {
    if (kind !== 'cut') continue;
    const width = (x(at + ms) - x(at)).toFixed(1);
    parts.push(
      `<rect class="cut" x="${x(at)}" y="${TOP - 4}" width="${width}" height="${lanes.length * LANE}"/>`,
    );
  }
  for (const name of lanes) {
    parts.push(`<text x="4" y="${y(name) + 14}">${name}</text>`);
    for (const [kind, from, to] of bars.get(name) ?? []) {
      const width = Math.max(1, x(to) - x(from)).toFixed(1);
      parts.push(
        `<rect class="${kind}" x="${x(from)}" y="${y(name) + 3}" width="${width}" height="14"/>`,
      );
    }
  }
  for (const { at, place, what, name, how } of history) {
    if (at > untilMs) break;
    if (what === 'settles' && how === 'ok') {
      parts.push(`<path class="ok" d="M${x(at)} ${y(nameOf(place)) + 5}v10"/>`);
    }
    if (what === 'dies') {
      parts.push(`<path class="dies" d="M${x(at)} ${y(nameOf(name)) + 3}l10 14m0 -14l-10 14"/>`);
    }
  }
  for (let at = 0; at <= untilMs; at += 5_000) {
    parts.push(`<text class="time" x="${x(at)}" y="${height - 6}">${at / 1_000} s</text>`);
  }
  const style =
    'text{font:11px sans-serif;fill:#444}.title{font-size:13px;font-weight:bold}.time{text-anchor:middle}' +
    '.holds{fill:#3366aa}.serves{fill:#a9c9e8}.ok{stroke:#fff;stroke-width:1.5}.dies{stroke:#c22;stroke-width:3;fill:none}.cut{fill:#f6dcd8}';
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img"><title>${title}</title><style>${style}</style><rect width="${WIDTH}" height="${height}" fill="#fff"/><text class="title" x="4" y="16">${title}</text>${parts.join('')}</svg>\n`;
}

const folder = new URL('../../docs/cluster/', import.meta.url);
mkdirSync(folder, { recursive: true });
await load(await build());
for (const [name, scene] of Object.entries(scenes)) {
  const { history } = await simulate({ ...scene, seed: name });
  writeFileSync(new URL(`${name}.svg`, folder), draw(scene, history));
}
process.exit(0);
