/** Writes the rows as a Markdown table, with the machine and the versions they were measured on. */

import { execFileSync } from 'node:child_process';
import { arch, availableParallelism, cpus, getPriority, loadavg, platform, release } from 'node:os';
import { ratios, summary } from './statistics.mjs';

// The largest ratio that counts as flat: at twice the number, a cost that grows with it would be 2.
const FLAT = 1.5;

/** The machine, the versions and the load, on which the numbers depend. */
export function environment() {
  let compiler = 'unknown';
  try {
    compiler = execFileSync('c++', ['--version'], { encoding: 'utf8' }).split('\n')[0];
  } catch {
    // There is no program `c++`: the table says 'unknown'.
  }
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors`,
    system: `${platform()} ${arch()} ${release()}`,
    node: `Node ${process.version}, V8 ${process.versions.v8}`,
    compiler,
    priority: getPriority(),
    load: loadavg()[0].toFixed(1),
  };
}

function number(value) {
  if (value === 0) return '0';
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en');
  return value.toPrecision(3);
}

function spread({ low, median, high }, unit) {
  const value = `${number(median)} ${unit}`.trim();
  return low === high ? value : `${value} (${number(low)} to ${number(high)})`;
}

function limit(goal) {
  if (goal?.ratio !== undefined) return { text: `≤ ${goal.ratio.toFixed(1)}×`, ratio: goal.ratio };
  if (goal?.flat) return { text: `flat: < ${FLAT}×`, ratio: FLAT };
  if (goal?.atMost !== undefined) return { text: '', value: goal.atMost };
  return { text: '' };
}

/** Whether the median reaches the goal, or else the better quartile. */
function verdict({ low, median }, most) {
  if (Number(median.toFixed(2)) <= most) return 'yes';
  return Number(low.toFixed(2)) <= most ? 'within the spread' : '**no**';
}

function cells({ what, peerName, unit, ours, peer, goal }) {
  const own = summary(ours);
  const hasRatio = peer !== undefined && summary(peer).median > 0;
  const ratio = hasRatio ? summary(ratios(ours, peer)) : undefined;
  const { text, ratio: mostRatio, value: mostValue } = limit(goal);
  const told =
    peer === undefined ? (peerName ?? '') : `${peerName}: ${spread(summary(peer), unit)}`;
  const goalText = mostValue === undefined ? text : `≤ ${number(mostValue)} ${unit}`.trim();
  let met = '';
  if (mostRatio !== undefined && ratio !== undefined) met = verdict(ratio, mostRatio);
  else if (mostValue !== undefined) met = verdict(own, mostValue);
  return [what, spread(own, unit), told, ratio ? spread(ratio, '×') : '', goalText, met];
}

export function table(rows, before, after) {
  const lines = [
    `Measured on ${before.date}: ${before.machine}; ${before.system}; ${before.node}; ` +
      `${before.compiler}. Load average ${before.load} at the start, ${after.load} at the end; ` +
      `process priority ${before.priority}.`,
    '',
    '| what | ours | peer | ratio | goal | met |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows.map((row) => `| ${cells(row).join(' | ')} |`),
  ];
  return `${lines.join('\n')}\n`;
}
