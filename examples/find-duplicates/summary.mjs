// Prints the results, as text for people or as JSON for programs.

import { relative } from 'node:path';
import Table from 'cli-table3';

const ROWS = 10;
const PATHS_PER_ROW = 3;

/** @typedef {import('./verify-worker.mjs').Group} Group */
/** @typedef {{ files: number, groups: Group[], unreadable: string[] }} Found */

/** @param {number} bytes */
export function formatBytes(bytes) {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let value = bytes;
  while (value >= 1000 && units.length > 1) {
    value /= 1000;
    units.shift();
  }
  return `${units[0] === 'B' ? value : value.toFixed(1)} ${units[0]}`;
}

/** @param {Group} group */
const wasted = ({ size, paths }) => size * (paths.length - 1);

/** @param {string} a @param {string} b */
const byName = (a, b) => (a < b ? -1 : 1);

/** Sorted by wasted bytes, largest first, then by path, so that the order is always the same.
 * @param {string} directory
 * @param {Group[]} groups */
function sort(directory, groups) {
  return groups
    .map(({ size, paths }) => ({
      size,
      paths: paths.map((path) => relative(directory, path)).toSorted(byName),
    }))
    .toSorted((a, b) => wasted(b) - wasted(a) || byName(a.paths[0], b.paths[0]));
}

/** @param {Group[]} groups */
const wastedByAll = (groups) => groups.reduce((sum, group) => sum + wasted(group), 0);

/** @param {string} directory
 * @param {Found} found */
export function toJson(directory, { files, groups, unreadable }) {
  const wastedBytes = wastedByAll(groups);
  const sorted = sort(directory, groups).map((group) => ({ ...group, wasted: wasted(group) }));
  return JSON.stringify({ directory, files, wastedBytes, groups: sorted, unreadable }, null, 2);
}

/** @param {string} directory
 * @param {Found} found */
export function toTable(directory, { files, groups, unreadable }) {
  const sorted = sort(directory, groups);
  // hasColors() honours NO_COLOR; it does not exist if stdout is not a terminal.
  const colors = process.stdout.hasColors?.() ?? false;
  const table = new Table({
    head: ['wasted', 'copies', 'size', 'files'],
    colAligns: ['right', 'right', 'right', 'left'],
    style: colors ? { head: ['bold'], border: ['gray'] } : { head: [], border: [] },
  });
  for (const group of sorted.slice(0, ROWS)) {
    const { size, paths } = group;
    const shown = paths.slice(0, PATHS_PER_ROW);
    if (paths.length > shown.length) shown.push(`and ${paths.length - shown.length} more`);
    table.push([formatBytes(wasted(group)), paths.length, formatBytes(size), shown.join('\n')]);
  }
  const lines = groups.length > 0 ? [table.toString()] : [];
  if (groups.length > ROWS) lines.push(`Not shown: ${groups.length - ROWS} smaller groups.`);
  lines.push(
    `Groups of duplicates: ${groups.length}, among ${files} files. Wasted: ${formatBytes(wastedByAll(groups))}.`,
  );
  if (unreadable.length > 0) {
    lines.push(`Not readable: ${unreadable.length}, the first: ${unreadable[0]}`);
  }
  return lines.join('\n');
}
