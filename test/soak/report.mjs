// The report of a soak: one SVG with what was measured over time, and a page that contains it.
import { parse, View } from 'vega';

const PANELS = [
  { title: 'memory (MB)', keys: ['rssMb', 'heapMb', 'externalMb'] },
  { title: 'open', keys: ['descriptors', 'threads', 'resources'] },
  { title: 'event loop delay, p99 (ms)', keys: ['loopDelayP99Ms'] },
];
const WIDTH = 760;
const HEIGHT = 170;

function panel({ title, keys }, warmUpS, isLast) {
  const name = keys.join('_');
  return {
    type: 'group',
    encode: { enter: { width: { value: WIDTH }, height: { value: HEIGHT } } },
    data: [
      { name, source: 'samples', transform: [{ type: 'fold', fields: keys, as: ['of', 'y'] }] },
    ],
    scales: [
      { name: 'x', domain: { data: 'samples', field: 's' }, range: [0, WIDTH], zero: true },
      {
        name: 'y',
        domain: { data: name, field: 'y' },
        range: [HEIGHT, 0],
        zero: true,
        nice: true,
      },
      { name: 'color', type: 'ordinal', domain: keys, range: ['#4c78a8', '#f58518', '#54a24b'] },
    ],
    axes: [
      { scale: 'x', orient: 'bottom', ...(isLast ? { title: 'seconds' } : {}) },
      { scale: 'y', orient: 'left', title, grid: true, tickCount: 5 },
    ],
    legends: [{ stroke: 'color', symbolType: 'stroke', orient: 'right' }],
    marks: [
      {
        type: 'rule',
        encode: {
          enter: {
            x: { scale: 'x', value: warmUpS },
            y: { value: 0 },
            y2: { value: HEIGHT },
            stroke: { value: '#888' },
            strokeDash: { value: [4, 4] },
          },
        },
      },
      {
        type: 'text',
        encode: {
          enter: {
            x: { scale: 'x', value: warmUpS, offset: 4 },
            y: { value: 10 },
            text: { value: 'end of the warm-up' },
            fill: { value: '#666' },
          },
        },
      },
      {
        type: 'group',
        from: { facet: { name: 'line', data: name, groupby: 'of' } },
        marks: [
          {
            type: 'line',
            from: { data: 'line' },
            encode: {
              enter: {
                x: { scale: 'x', field: 's' },
                y: { scale: 'y', field: 'y' },
                stroke: { scale: 'color', field: 'of' },
                strokeWidth: { value: 1.5 },
              },
            },
          },
        ],
      },
    ],
  };
}

const escaped = (text) =>
  String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** @returns {Promise<{ svg: string, html: string }>} */
export async function report(result) {
  const view = new View(
    parse({
      padding: 10,
      background: 'white',
      layout: { columns: 1, padding: 30 },
      data: [{ name: 'samples', values: result.samples }],
      marks: PANELS.map((each, at) => panel(each, result.warmUpS, at === PANELS.length - 1)),
    }),
    { renderer: 'none' },
  );
  const svg = await view.toSVG();
  const rows = result.verdicts.map(
    ({ what, ok, detail }) =>
      `<tr class="${ok ? 'ok' : 'failed'}"><td>${ok ? 'ok' : 'FAILED'}</td><td>${escaped(what)}</td><td>${escaped(detail)}</td></tr>`,
  );
  const html = `<!doctype html>
<meta charset="utf-8">
<title>allstop: soak</title>
<style>
body { font: 15px/1.4 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; }
td { padding: 2px 10px; vertical-align: top; border-top: 1px solid #ddd; white-space: pre-line; }
.failed td { background: #fdd; font-weight: bold; }
svg { max-width: 100%; height: auto; }
</style>
<h1>Soak: ${result.ok ? 'every verdict holds' : 'a verdict FAILED'}</h1>
<p>${result.minutes.toFixed(1)} minutes on Node ${escaped(result.node)}, ${escaped(result.platform)}; <code>--seed ${escaped(result.seed)}</code>.</p>
${svg}
<table>${rows.join('\n')}</table>
`;
  return { svg, html };
}
