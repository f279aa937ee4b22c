// Plots the training as SVG. Vega can do that without a browser.

import { parse, View } from 'vega';

/** @typedef {{ seconds: number, loss: number, of: 'training' | 'validation' }} Point */

const DEATH = 'a worker is killed';
const RESTART = 'the coordinator is killed, and started again';

/** Vertical lines where something happened. @param {string} data */
const rules = (data, label) => ({
  type: 'rule',
  from: { data },
  encode: {
    enter: {
      x: { scale: 'x', field: 'seconds' },
      y: { value: 0 },
      y2: { signal: 'height' },
      stroke: { scale: 'color', value: label },
      strokeWidth: { value: label === RESTART ? 2 : 1 },
      strokeDash: { value: label === RESTART ? [4, 3] : [] },
    },
  },
});

/** @param {{ points: Point[], kills: number[], restarts: number[],
 *   alive: { seconds: number, alive: number }[], seconds: () => number }} history
 * @returns {Promise<string>} */
export function plot({ points, kills, restarts, alive, seconds }) {
  const end = { seconds: seconds(), alive: alive.at(-1)?.alive ?? 0 };
  const view = new View(
    parse({
      width: 720,
      height: 420,
      padding: 10,
      background: 'white',
      data: [
        { name: 'points', values: points },
        { name: 'kills', values: kills.map((at) => ({ seconds: at })) },
        { name: 'restarts', values: restarts.map((at) => ({ seconds: at })) },
        { name: 'alive', values: [...alive, end] },
      ],
      scales: [
        { name: 'x', domain: [0, end.seconds], range: 'width' },
        {
          name: 'loss',
          domain: { data: 'points', field: 'loss' },
          range: [290, 0],
          zero: true,
          nice: true,
        },
        {
          name: 'alive',
          domain: { data: 'alive', field: 'alive' },
          range: [420, 330],
          zero: true,
        },
        {
          name: 'color',
          type: 'ordinal',
          domain: ['training', 'validation', DEATH, RESTART],
          range: ['#4c78a8', '#f58518', '#d62728', '#333333'],
        },
      ],
      axes: [
        { scale: 'x', orient: 'bottom', title: 'seconds' },
        { scale: 'loss', orient: 'left', title: 'loss (cross-entropy)', grid: true },
        {
          scale: 'alive',
          orient: 'left',
          title: 'workers alive',
          grid: true,
          tickMinStep: 1,
          tickCount: 3,
          format: 'd',
        },
      ],
      legends: [
        {
          stroke: 'color',
          symbolType: 'stroke',
          orient: 'bottom',
          direction: 'horizontal',
          labelLimit: 0,
        },
      ],
      marks: [
        rules('kills', DEATH),
        rules('restarts', RESTART),
        {
          type: 'group',
          from: { facet: { name: 'line', data: 'points', groupby: 'of' } },
          marks: [
            {
              type: 'line',
              from: { data: 'line' },
              encode: {
                enter: {
                  x: { scale: 'x', field: 'seconds' },
                  y: { scale: 'loss', field: 'loss' },
                  stroke: { scale: 'color', field: 'of' },
                },
              },
            },
          ],
        },
        {
          type: 'line',
          from: { data: 'alive' },
          encode: {
            enter: {
              x: { scale: 'x', field: 'seconds' },
              y: { scale: 'alive', field: 'alive' },
              interpolate: { value: 'step-after' },
              stroke: { value: '#54a24b' },
            },
          },
        },
      ],
    }),
    { renderer: 'none' },
  );
  return view.toSVG();
}
