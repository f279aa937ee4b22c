/** Rows as Markdown tables. */

import { FLAT } from '../rows.mjs';
import { median, ratios, summary } from '../statistics.mjs';

export function number(value) {
  if (value === 0) return '0';
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en');
  return value.toPrecision(3);
}

function spread({ low, median: middle, high }, unit) {
  const [from, to] = [number(low), number(high)];
  const value = `${number(middle)} ${unit}`.trim();
  return from === to ? value : `${value} (${from} to ${to})`;
}

/** The peer that a row is compared with: of several the one with the smallest median. */
function peerOf({ peer }, { peer: values, peers }) {
  if (values !== undefined) return { name: peer, values };
  const all = Object.entries(peers ?? {}).map(([name, each]) => ({ name, values: each }));
  return all.toSorted((a, b) => median(a.values) - median(b.values))[0];
}

export function goalOf({ goal, unit }) {
  if (goal?.ratio !== undefined) {
    const { ratio } = goal;
    const text = ratio < 1 ? ratio.toFixed(2) : String(ratio);
    return { text: `≤ ${text} ×`, ratio };
  }
  if (goal?.flat) return { text: `flat: < ${FLAT} ×`, ratio: FLAT };
  if (goal?.atMost === 0) return { text: 'none', value: 0 };
  if (goal?.atMost !== undefined) {
    return { text: `≤ ${number(goal.atMost)} ${unit}`.trim(), value: goal.atMost };
  }
  return { text: '' };
}

/** Whether the median reaches the goal, or else the better quartile. */
function verdict({ low, median: middle }, most) {
  const isMet = (value) => Number(value.toFixed(2)) <= Number(most.toFixed(2));
  if (isMet(middle)) return 'yes';
  return isMet(low) ? 'within the spread' : 'no';
}

/** What is known of a row that was measured. @returns {{ own, peer?, ratio?, goal, met }} */
export function judge(row, result) {
  const own = summary(result.ours);
  const peer = peerOf(row, result);
  const isComparable = peer !== undefined && median(peer.values) > 0;
  const ratio = isComparable ? summary(ratios(result.ours, peer.values)) : undefined;
  const goal = goalOf(row);
  let met = '';
  if (goal.ratio !== undefined && ratio !== undefined) met = verdict(ratio, goal.ratio);
  else if (goal.value !== undefined) met = verdict(own, goal.value);
  return { own, peer, ratio, goal, met };
}

function peerCell(row, result, { peer }) {
  const { unit } = row;
  if (peer === undefined) return row.peer ?? '';
  const first = `${peer.name}: ${spread(summary(peer.values), unit)}`;
  const others = Object.entries(result.peers ?? {})
    .filter(([name]) => name !== peer.name)
    .map(([name, values]) => `${name}: ${number(median(values))} ${unit}`);
  return [first, ...others].join('; ');
}

const line = (cells) => `| ${cells.join(' | ')} |`;
const bold = (text) => (text === 'no' ? '**no**' : text);

/** @param {Map<string, object>} results by the name of the row: what its runner reported, or { failed } */
export function table(rows, results) {
  const lines = rows.map((row) => {
    const result = results.get(row.name);
    if (result === undefined || result.failed !== undefined) {
      const why = result?.failed ?? 'its benchmark did not report it';
      return line([row.what, `*not measured: ${why}*`, row.peer ?? '', '', goalOf(row).text, '']);
    }
    const found = judge(row, result);
    const { own, ratio, goal, met } = found;
    const cells = [spread(own, row.unit), peerCell(row, result, found)];
    return line([row.what, ...cells, ratio ? spread(ratio, '×') : '', goal.text, bold(met)]);
  });
  const head = ['what', 'ours', 'peer', 'ratio', 'goal', 'met'];
  return [line(head), line(head.map(() => '---')), ...lines].join('\n');
}

const UNARGUED = {
  no: 'Not argued yet.',
  'within the spread': 'The median misses it, the better quartile does not.',
};

/** The rows that miss their goal: goal, ours, peer, limit. */
export function missedTable(rows, results) {
  const lines = [];
  for (const row of rows) {
    const result = results.get(row.name);
    if (result === undefined || result.failed !== undefined) continue;
    const found = judge(row, result);
    if (found.met !== 'no' && found.met !== 'within the spread') continue;
    const { own, ratio, goal, met } = found;
    const ours = [spread(own, row.unit), ratio ? `${number(ratio.median)} ×` : ''];
    const peer = found.peer === undefined ? '' : number(summary(found.peer.values).median);
    const told = `${found.peer?.name ?? ''} ${peer} ${peer && row.unit}`.trim();
    const limit = row.limit ?? UNARGUED[met];
    const goalCell = met === 'no' ? goal.text : `${goal.text} (within the spread)`;
    lines.push(line([row.what, goalCell, ours.filter(Boolean).join(': '), told, limit]));
  }
  if (lines.length === 0) return 'None.';
  const head = ['what', 'goal', 'ours', 'peer', 'limit'];
  return [line(head), line(head.map(() => '---')), ...lines].join('\n');
}
