// Plots the loss over the steps as SVG. Vega can do that without a browser.

import { parse, View } from 'vega';

/** @typedef {{ step: number, loss: number, of: 'training' | 'validation' }} Point */

/** @param {Point[]} points
 * @param {number[]} kills the steps before which a worker was killed
 * @returns {Promise<string>} */
export function plotLoss(points, kills) {
  const view = new View(
    parse({
      width: 640,
      height: 320,
      padding: 10,
      background: 'white',
      data: [
        { name: 'points', values: points },
        { name: 'kills', values: kills.map((step) => ({ step })) },
      ],
      scales: [
        { name: 'x', domain: { data: 'points', field: 'step' }, range: 'width', zero: true },
        {
          name: 'y',
          domain: { data: 'points', field: 'loss' },
          range: 'height',
          zero: true,
          nice: true,
        },
        {
          name: 'color',
          type: 'ordinal',
          domain: ['training', 'validation', 'a worker is killed'],
          range: ['#4c78a8', '#f58518', '#bbbbbb'],
        },
      ],
      axes: [
        { scale: 'x', orient: 'bottom', title: 'step' },
        { scale: 'y', orient: 'left', title: 'loss (cross-entropy)', grid: true },
      ],
      legends: [{ stroke: 'color', symbolType: 'stroke', orient: 'top-right' }],
      marks: [
        {
          type: 'rule',
          from: { data: 'kills' },
          encode: {
            enter: {
              x: { scale: 'x', field: 'step' },
              y: { value: 0 },
              y2: { signal: 'height' },
              stroke: { scale: 'color', value: 'a worker is killed' },
            },
          },
        },
        {
          type: 'group',
          from: { facet: { name: 'line', data: 'points', groupby: 'of' } },
          marks: [
            {
              type: 'line',
              from: { data: 'line' },
              encode: {
                enter: {
                  x: { scale: 'x', field: 'step' },
                  y: { scale: 'y', field: 'loss' },
                  stroke: { scale: 'color', field: 'of' },
                },
              },
            },
          ],
        },
      ],
    }),
    { renderer: 'none' },
  );
  return view.toSVG();
}
