// Plots the training as SVG. Vega can do that without a browser.

import { parse, View } from 'vega';

/** @typedef {{ seconds: number, loss: number, of: 'training' | 'validation' }} Point */

/** The lanes of the lowest panel, by what died. */
const DEATHS = {
  worker: 'worker killed',
  ps: 'parameter server killed',
  coordinator: 'coordinator killed',
  server: 'NATS server killed',
};
const RESTART = 'coordinator started again';
const RED = '#d62728';
const LANE = 22;

/** @param {ReturnType<import('./history.mjs').createHistory>} history
 * @returns {Promise<string>} */
export function plot(history) {
  const { points, alive } = history;
  const end = { seconds: history.seconds(), alive: alive.at(-1)?.alive ?? 0 };
  const deaths = history.deaths.map(({ of, at }) => ({
    seconds: history.seconds(at),
    lane: DEATHS[of],
  }));
  const restarts = history.restarts.map(({ at }) => ({
    seconds: history.seconds(at),
    lane: RESTART,
  }));
  const lanes = [...Object.values(DEATHS), RESTART].filter((lane) =>
    [...deaths, ...restarts].some((each) => each.lane === lane),
  );
  const height = 440 + LANE * lanes.length;
  const view = new View(
    parse({
      width: 720,
      height,
      padding: 10,
      background: 'white',
      data: [
        { name: 'points', values: points },
        { name: 'deaths', values: deaths },
        { name: 'restarts', values: restarts },
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
        { name: 'lane', type: 'band', domain: lanes, range: [440, height] },
        {
          name: 'color',
          type: 'ordinal',
          domain: ['training', 'validation'],
          range: ['#4c78a8', '#f58518'],
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
        { scale: 'lane', orient: 'left', domain: false, ticks: false, labelLimit: 0 },
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
        {
          type: 'rule',
          from: { data: 'deaths' },
          encode: {
            enter: {
              x: { scale: 'x', field: 'seconds' },
              y: { scale: 'lane', field: 'lane' },
              y2: { scale: 'lane', field: 'lane', band: 0.8 },
              stroke: { value: RED },
              strokeWidth: { value: 2 },
            },
          },
        },
        {
          type: 'symbol',
          from: { data: 'restarts' },
          encode: {
            enter: {
              x: { scale: 'x', field: 'seconds' },
              y: { scale: 'lane', field: 'lane', band: 0.5 },
              shape: { value: 'triangle-right' },
              size: { value: 60 },
              fill: { value: '#333333' },
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
