// Prints the results, as text for people or as JSON for programs.

import { relative } from 'node:path';
import Table from 'cli-table3';

const ROWS = 10;
const PATHS_PER_ROW = 3;
/** The width of the table where stdout is not a terminal. */
const PIPED = 80;
/** A column of paths is not made narrower than this. */
const NARROWEST = 20;

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

/** A path in at most `width` letters: its beginning is left out, since its end tells files apart.
 * @param {string} path
 * @param {number} width */
const shortened = (path, width) => (path.length <= width ? path : `…${path.slice(1 - width)}`);

/** The text in lines of at most `width` letters, broken at spaces. A longer word stays whole.
 * @param {string} text
 * @param {number} width */
const wrapped = (text, width) =>
  text.replaceAll(new RegExp(`(.{1,${width}})(?: +|$)`, 'g'), '$1\n').trimEnd();

/** The columns beside the paths, for which the terminal has room, and the room for the paths.
 * @param {{ wasted: string, copies: string, size: string }[]} rows
 * @param {number} columns */
function fitted(rows, columns) {
  const titles = /** @type {('wasted' | 'copies' | 'size')[]} */ (['wasted', 'copies', 'size']);
  // Beside each cell are two spaces and a rule, and one more rule at the end.
  const room = () =>
    titles
      .map((title) => Math.max(title.length, ...rows.map((row) => row[title].length)))
      .reduce((rest, width) => rest - width - 3, columns - 4);
  while (room() < NARROWEST && titles.length > 1) titles.pop();
  return { titles, room: Math.max(room(), NARROWEST) };
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
  const rows = sorted.slice(0, ROWS).map((group) => ({
    wasted: formatBytes(wasted(group)),
    copies: `${group.paths.length}`,
    size: formatBytes(group.size),
  }));
  const columns = process.stdout.columns || PIPED;
  const { titles, room } = fitted(rows, columns);
  const table = new Table({
    head: [...titles, 'files'],
    colAligns: [...titles.map(() => /** @type {const} */ ('right')), 'left'],
    style: colors ? { head: ['bold'], border: ['gray'] } : { head: [], border: [] },
  });
  for (const [at, row] of rows.entries()) {
    const { paths } = sorted[at];
    const shown = paths.slice(0, PATHS_PER_ROW).map((path) => shortened(path, room));
    if (paths.length > shown.length) shown.push(`and ${paths.length - shown.length} more`);
    table.push([...titles.map((title) => row[title]), shown.join('\n')]);
  }
  const sentences = [];
  if (groups.length > ROWS) sentences.push(`Not shown: ${groups.length - ROWS} smaller groups.`);
  sentences.push(
    `Groups of duplicates: ${groups.length}, among ${files} files. Wasted: ${formatBytes(wastedByAll(groups))}.`,
  );
  if (unreadable.length > 0) {
    sentences.push(`Not readable: ${unreadable.length}, the first: ${unreadable[0]}`);
  }
  // A program that reads the output gets each sentence on one line.
  const { columns: width } = process.stdout;
  const lines = width ? sentences.map((sentence) => wrapped(sentence, width)) : sentences;
  return (groups.length > 0 ? [table.toString(), ...lines] : lines).join('\n');
}
