/** The pictures of docs/benchmarks.md, as SVG, for a light and for a dark page. */

import { readFileSync } from 'node:fs';
import { parse, View } from 'vega';
import { FLAT } from '../rows.mjs';
import { median } from '../statistics.mjs';
import { judge, number } from './table.mjs';

const THEMES = {
  light: {
    page: '#ffffff',
    text: '#1f2328',
    faint: '#d1d9e0',
    met: '#1a7f37',
    near: '#9a6700',
    missed: '#cf222e',
    ours: '#0969da',
    peer: '#8c959f',
  },
  dark: {
    page: '#0d1117',
    text: '#f0f6fc',
    faint: '#3d444d',
    met: '#3fb950',
    near: '#d29922',
    missed: '#f85149',
    ours: '#4493f8',
    peer: '#767e88',
  },
};

const MARKUP = /[`*]/g;
const plain = (text) => text.replaceAll(MARKUP, '');
const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function framed(theme, spec) {
  const { page, text, faint } = theme;
  const ink = { labelColor: text, titleColor: text };
  return {
    padding: 12,
    background: page,
    config: {
      axis: {
        ...ink,
        domainColor: faint,
        tickColor: faint,
        gridColor: faint,
        labelFontSize: 12,
        titleFontSize: 12,
      },
      legend: { ...ink, labelFontSize: 12, labelLimit: 300 },
      title: { color: text, fontSize: 13, anchor: 'start', fontWeight: 'bold' },
      text: { fill: text },
    },
    ...spec,
  };
}

const svgOf = (spec) => new View(parse(spec), { renderer: 'none' }).toSVG();

const at = (scale, field) => ({ scale, field });

/** Each row with a ratio: its median, its quartiles, and the line of its goal. */
function ratioChart(theme, rows, results) {
  const values = rows.flatMap((row) => {
    const result = results.get(row.name);
    if (result?.ours === undefined || row.goal === undefined) return [];
    const { ratio, goal, met } = judge(row, result);
    if (ratio === undefined || goal.ratio === undefined || !(ratio.low > 0)) return [];
    const { name, what, peer } = row;
    const label = shorten(`${plain(what)} / ${plain(peer)}`, 90);
    return [{ name, label, ...ratio, goal: goal.ratio, met }];
  });
  if (values.length === 0) return undefined;
  const all = values.flatMap(({ low, high, goal }) => [low, high, goal]);
  const band = { scale: 'y', field: 'name', band: 0.5 };
  const height = values.length * 18;
  return framed(theme, {
    width: 420,
    height,
    // Without fonts Vega takes text to be wider than it is: the room for the labels is said here.
    autosize: 'none',
    padding: { left: 560, top: 76, right: 16, bottom: 60 },
    title: {
      text: 'Cost beside the peer: median and quartiles; | the goal; left is better',
      offset: 30,
      anchor: 'end',
      frame: 'group',
    },
    data: [{ name: 'rows', values }],
    scales: [
      {
        name: 'x',
        type: 'log',
        domain: [Math.min(...all) * 0.8, Math.max(...all) * 1.25],
        range: 'width',
      },
      { name: 'y', type: 'band', domain: values.map(({ name }) => name), range: 'height' },
      {
        name: 'color',
        type: 'ordinal',
        domain: ['yes', 'within the spread', 'no'],
        range: [theme.met, theme.near, theme.missed],
      },
    ],
    axes: [
      {
        scale: 'x',
        orient: 'top',
        grid: true,
        values: [0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100],
        format: '~g',
      },
    ],
    legends: [
      {
        fill: 'color',
        title: 'goal met',
        orient: 'bottom',
        direction: 'horizontal',
        symbolType: 'circle',
        titleColor: theme.text,
      },
    ],
    marks: [
      {
        type: 'text',
        from: { data: 'rows' },
        encode: {
          enter: {
            x: { value: -10 },
            y: band,
            text: { field: 'label' },
            align: { value: 'right' },
            baseline: { value: 'middle' },
            fontSize: { value: 11 },
          },
        },
      },
      {
        type: 'rule',
        encode: {
          enter: {
            x: { scale: 'x', value: 1 },
            y: { value: 0 },
            y2: { value: height },
            stroke: { value: theme.text },
            strokeOpacity: { value: 0.6 },
          },
        },
      },
      {
        type: 'rule',
        from: { data: 'rows' },
        encode: {
          enter: {
            x: at('x', 'low'),
            x2: at('x', 'high'),
            y: band,
            stroke: at('color', 'met'),
            strokeWidth: { value: 3 },
            strokeOpacity: { value: 0.55 },
          },
        },
      },
      {
        type: 'rule',
        from: { data: 'rows' },
        encode: {
          enter: {
            x: at('x', 'goal'),
            y: { ...band, offset: -7 },
            y2: { ...band, offset: 7 },
            stroke: { value: theme.text },
            strokeWidth: { value: 2 },
          },
        },
      },
      {
        type: 'symbol',
        from: { data: 'rows' },
        encode: {
          enter: { x: at('x', 'median'), y: band, fill: at('color', 'met'), size: { value: 52 } },
        },
      },
    ],
  });
}

/** The panels of the pools: of each row the value of ours and of each peer. */
const POOLS = [
  { title: 'Trivial calls a second, 2 threads', rows: ['pool/calls'], of: (us) => 1e6 / us },
  { title: 'Round trip, 1 in flight, 2 threads (µs)', rows: ['plain/round-trip'], of: (us) => us },
  {
    title: 'Latency p99 at 3,000 calls a second (µs)',
    rows: ['pool/latency-p99'],
    of: (us) => us,
  },
  {
    title: 'Trivial calls a second, 4 processes on NATS or Redis',
    rows: ['nats/calls-bullmq', 'nats/calls-jetstream'],
    of: (us) => 1e6 / us,
  },
  {
    title: 'Round trip, 4 processes on NATS or Redis (µs)',
    rows: ['nats/round-trip-bullmq', 'nats/round-trip-jetstream'],
    of: (us) => us,
  },
];

function poolValues({ rows: names, of }, rows, results) {
  const found = new Map();
  for (const name of names) {
    const result = results.get(name);
    if (result?.ours === undefined) continue;
    const { peer } = rows.find((row) => row.name === name);
    found.set('allstop', of(median(result.ours)));
    const peers = result.peers ?? (result.peer && { [peer]: result.peer }) ?? {};
    for (const [each, values] of Object.entries(peers)) found.set(each, of(median(values)));
  }
  return [...found].map(([pool, value]) => ({ pool, value, label: number(value) }));
}

// Without fonts Vega takes text to be wider than it is. With `bounds: 'flush'` it lays panels out by
// their frames alone, and the padding is the room for the text between them.
function poolChart(theme, rows, results) {
  const panels = POOLS.map((panel) => ({ ...panel, values: poolValues(panel, rows, results) }));
  const drawn = panels.filter(({ values }) => values.length > 1);
  if (drawn.length === 0) return undefined;
  return framed(theme, {
    layout: { columns: 2, padding: { row: 60, column: 190 }, align: 'all', bounds: 'flush' },
    marks: drawn.map(({ title, values }, index) => {
      const data = `pools${index}`;
      const height = values.length * 24;
      return {
        type: 'group',
        title: { text: title },
        encode: { enter: { width: { value: 300 }, height: { value: height } } },
        data: [{ name: data, values }],
        scales: [
          { name: 'x', domain: { data, field: 'value' }, range: [0, 300], zero: true },
          {
            name: 'y',
            type: 'band',
            domain: values.map(({ pool }) => pool),
            range: [0, height],
            padding: 0.2,
          },
        ],
        axes: [{ scale: 'y', orient: 'left', domain: false, ticks: false, labelPadding: 6 }],
        marks: [
          {
            type: 'rect',
            from: { data },
            encode: {
              enter: {
                x: { scale: 'x', value: 0 },
                x2: at('x', 'value'),
                y: at('y', 'pool'),
                height: { scale: 'y', band: 1 },
                fill: { signal: `datum.pool === 'allstop' ? '${theme.ours}' : '${theme.peer}'` },
              },
            },
          },
          {
            type: 'text',
            from: { data },
            encode: {
              enter: {
                x: { ...at('x', 'value'), offset: 5 },
                y: { ...at('y', 'pool'), band: 0.5 },
                text: { field: 'label' },
                baseline: { value: 'middle' },
              },
            },
          },
        ],
      };
    }),
  });
}

/** Each row with sizes: the cost of one against the number; the line is what counts as flat. */
function sizeChart(theme, rows, results) {
  const panels = rows.flatMap((row) => {
    const sizes = results.get(row.name)?.sizes;
    if (sizes === undefined) return [];
    return [{ row, values: sizes.map(([size, values]) => ({ size, cost: median(values) })) }];
  });
  if (panels.length === 0) return undefined;
  const [width, height] = [380, 96];
  return framed(theme, {
    layout: { columns: 2, padding: { row: 80, column: 70 }, align: 'all', bounds: 'flush' },
    marks: panels.map(({ row, values }, index) => {
      const data = `sizes${index}`;
      const first = values[0];
      const top = Math.max(first.cost * FLAT, ...values.map(({ cost }) => cost));
      return {
        type: 'group',
        title: {
          text: shorten(plain(row.what).split(': ').at(-1), 60),
          fontSize: 11,
          subtitle: [...plain(row.what).split(': ').slice(0, -1), row.unit].join('; '),
          subtitleColor: theme.text,
          subtitleFontSize: 10,
        },
        encode: { enter: { width: { value: width }, height: { value: height } } },
        data: [{ name: data, values }],
        scales: [
          { name: 'x', type: 'log', domain: [first.size, values.at(-1).size], range: [0, width] },
          { name: 'y', domain: [0, top], range: [height, 0], nice: true },
        ],
        axes: [
          {
            scale: 'x',
            orient: 'bottom',
            values: values.map(({ size }) => size),
            format: ',',
            labelOverlap: true,
          },
          { scale: 'y', orient: 'left', tickCount: 3, grid: true },
        ],
        marks: [
          {
            type: 'rule',
            encode: {
              enter: {
                x: { value: 0 },
                x2: { value: width },
                y: { scale: 'y', value: first.cost * FLAT },
                stroke: { value: theme.missed },
                strokeDash: { value: [4, 4] },
              },
            },
          },
          {
            type: 'line',
            from: { data },
            encode: {
              enter: {
                x: at('x', 'size'),
                y: at('y', 'cost'),
                stroke: { value: theme.ours },
                strokeWidth: { value: 2 },
              },
            },
          },
          {
            type: 'symbol',
            from: { data },
            encode: {
              enter: {
                x: at('x', 'size'),
                y: at('y', 'cost'),
                fill: { value: theme.ours },
                size: { value: 36 },
              },
            },
          },
        ],
      };
    }),
  });
}

/** What `npm run bench:history` has counted: a panel for each count, a line for the peers. */
const HISTORY = {
  alone: 'Thousand instructions of a call, of the first 800 one after the other',
  many: 'Thousand instructions of a call, of 1,280 of which 64 run at once',
  import: 'Thousand instructions of the import',
};

function historyChart(theme) {
  const file = new URL('../history/counts.json', import.meta.url);
  const { commits, peers } = JSON.parse(readFileSync(file, 'utf8'));
  const days = Object.values(commits).map((counts) => ({ ...counts, at: Date.parse(counts.date) }));
  const others = Object.entries(peers).map(([peer, counts]) => ({ peer, ...counts }));
  const [width, height] = [560, 130];
  return framed(theme, {
    layout: { columns: 1, padding: { row: 70 }, align: 'all', bounds: 'flush' },
    marks: Object.entries(HISTORY).map(([key, title]) => {
      const [own, peer] = [`days-${key}`, `peers-${key}`];
      const x = at('x', 'at');
      const y = at('y', key);
      return {
        type: 'group',
        title: { text: title, fontSize: 11 },
        encode: { enter: { width: { value: width }, height: { value: height } } },
        data: [
          { name: own, values: days },
          { name: peer, values: others },
        ],
        scales: [
          { name: 'x', type: 'utc', domain: { data: own, field: 'at' }, range: [0, width] },
          {
            name: 'y',
            domain: [0, Math.max(...[...days, ...others].map((each) => each[key])) * 1.05],
            range: [height, 0],
            nice: true,
          },
        ],
        axes: [
          { scale: 'x', orient: 'bottom', tickCount: 'day', format: '%b %d', labelOverlap: true },
          { scale: 'y', orient: 'left', tickCount: 4, grid: true, format: ',' },
        ],
        marks: [
          {
            type: 'rule',
            from: { data: peer },
            encode: {
              enter: {
                x: { value: 0 },
                x2: { value: width },
                y,
                stroke: { value: theme.peer },
                strokeDash: { value: [5, 4] },
              },
            },
          },
          {
            type: 'text',
            from: { data: peer },
            encode: {
              enter: {
                x: { value: width + 6 },
                y,
                text: { field: 'peer' },
                baseline: { value: 'middle' },
                fill: { value: theme.peer },
                fontSize: { value: 11 },
              },
            },
          },
          {
            type: 'line',
            from: { data: own },
            encode: {
              enter: { x, y, stroke: { value: theme.ours }, strokeWidth: { value: 2 } },
            },
          },
          {
            type: 'symbol',
            from: { data: own },
            encode: { enter: { x, y, fill: { value: theme.ours }, size: { value: 40 } } },
          },
        ],
      };
    }),
  });
}

const CHARTS = {
  ratios: ratioChart,
  pools: poolChart,
  history: historyChart,
  sizes: sizeChart,
};

/** @returns {Promise<Map<string, string>>} SVG by `CHART-THEME`; a chart without values is left out */
export async function charts(rows, results) {
  const drawn = new Map();
  for (const [chart, draw] of Object.entries(CHARTS)) {
    for (const [name, theme] of Object.entries(THEMES)) {
      const spec = draw(theme, rows, results);
      if (spec !== undefined) drawn.set(`${chart}-${name}`, `${await svgOf(spec)}\n`);
    }
  }
  return drawn;
}
