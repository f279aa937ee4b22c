// The figures by room of ARCHITECTURE.md, and whether they are enough.
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Of each of the PARTS, in per cent. */
const LEAST = { lines: 95, branches: 90 };
const PARTS = ['native/core', 'native/abi', 'native/binding', 'lib'];

/** From lcov's format: for each file the hits of its lines, and of the branches in each line. */
function parse(root, lcov) {
  const files = new Map();
  let file;
  for (const record of lcov.split('\n')) {
    const [key, value = ''] = record.split(/:(.*)/s);
    const [line, ...rest] = value.split(',');
    if (key === 'SF') {
      file = files.get(relative(root, value)) ?? { lines: new Map(), branches: new Map() };
      files.set(relative(root, value), file);
    } else if (key === 'DA') {
      file.lines.set(Number(line), Number(rest[0]));
    } else if (key === 'BRDA') {
      const arms = file.branches.get(Number(line)) ?? [];
      file.branches.set(Number(line), [...arms, rest[2] === '-' ? 0 : Number(rest[2])]);
    }
  }
  return files;
}

/**
 * Takes the lines of test/coverage/exceptions.json out of `files`. An exception names a file, a
 * piece of text that only its first line has, with `to` a piece of its last line, and the reason.
 *
 * @returns the entries that name nothing; and, as `reached`, those that this run did not need
 */
export function subtract(root, files, exceptions) {
  const reached = [];
  const objections = exceptions.flatMap(({ file, code, to = code, reason }) => {
    if (!reason) return [`${file}: "${code}" has no reason`];
    const source = readFileSync(join(root, file), 'utf8').split('\n');
    const first = source.findIndex((line) => line.includes(code));
    if (first < 0 || source.some((line, at) => at > first && line.includes(code))) {
      return [`${file}: the text "${code}" is not in exactly one line`];
    }
    const last = source.findIndex((line, at) => at >= first && line.includes(to));
    if (last < 0) return [`${file}: no line after "${code}" has the text "${to}"`];
    let isNeeded = false;
    for (let line = first + 1; line <= last + 1; line += 1) {
      const { lines, branches } = files.get(file) ?? { lines: new Map(), branches: new Map() };
      isNeeded ||= lines.get(line) === 0 || (branches.get(line) ?? []).includes(0);
      lines.delete(line);
      branches.delete(line);
    }
    if (!isNeeded) reached.push(`${file}: "${code}"`);
    return [];
  });
  return { objections, reached };
}

function figures(files, isInside) {
  const sum = { lines: [0, 0], branches: [0, 0] };
  for (const [path, { lines, branches }] of files) {
    if (!isInside(path)) continue;
    for (const hits of lines.values()) sum.lines[hits > 0 ? 0 : 1] += 1;
    for (const hits of [...branches.values()].flat()) sum.branches[hits > 0 ? 0 : 1] += 1;
  }
  return sum;
}

const percent = ([reached, missed]) => (100 * reached) / Math.max(1, reached + missed);
const column = (counts) =>
  `${percent(counts).toFixed(1).padStart(6)} % ${`${counts[0]} of ${counts[0] + counts[1]}`.padEnd(13)}`;
const row = (name, { lines, branches }, end = '') =>
  `${name.padEnd(28)} ${column(lines)} ${column(branches)} ${end}`.trimEnd();

/** The innermost room that holds the file. */
function roomOf(rooms, path) {
  return rooms.findLast((room) => path === room || path.startsWith(`${room}/`)) ?? 'elsewhere';
}

function uncovered(files) {
  return [...files].flatMap(([path, { lines, branches }]) => {
    const missed = [...lines].filter(([, hits]) => hits === 0).map(([line]) => `${line}`);
    const halves = [...branches]
      .filter(([line, arms]) => arms.includes(0) && lines.get(line) !== 0)
      .map(([line, arms]) => `${line} (${arms.filter((hits) => hits === 0).length})`);
    if (missed.length + halves.length === 0) return [];
    return [`${path}\n  lines: ${missed.join(', ')}\n  branches not taken: ${halves.join(', ')}\n`];
  });
}

/** Prints the figures, and writes the lines that are missed to uncovered.txt. */
export function judge({ root, folder, lcov }) {
  const files = parse(root, lcov);
  const exceptions = JSON.parse(readFileSync(join(root, 'test/coverage/exceptions.json'), 'utf8'));
  const { objections, reached } = subtract(root, files, exceptions);
  const table = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
  const rooms = [...table.matchAll(/^\| `([^`]+)` \|/gm)]
    .map(([, room]) => room)
    .toSorted((one, other) => one.localeCompare(other));
  const say = (line) => process.stdout.write(`${line}\n`);

  say(`\n${'room'.padEnd(28)}   lines                  branches`);
  for (const room of rooms) {
    const inside = figures(files, (path) => roomOf(rooms, path) === room);
    if (inside.lines[0] + inside.lines[1] > 0) say(row(room, inside));
  }
  say('');
  let isEnough = objections.length === 0;
  for (const part of PARTS) {
    const inside = figures(files, (path) => path.startsWith(`${part}/`));
    const enough = Object.keys(LEAST).every((what) => percent(inside[what]) >= LEAST[what]);
    isEnough &&= enough;
    say(row(part, inside, enough ? 'enough' : 'TOO LITTLE'));
  }
  say(`(needed: ${LEAST.lines} % of lines, ${LEAST.branches} % of branches)`);
  say(`Not counted: ${exceptions.length} places, with reasons, in test/coverage/exceptions.json`);
  for (const objection of objections) say(`exceptions.json: ${objection}`);
  for (const each of reached) say(`reached all the same: ${each}`);
  writeFileSync(join(folder, 'uncovered.txt'), uncovered(files).join('\n'));
  say(`Not reached: ${join(folder, 'uncovered.txt')}`);
  return isEnough;
}
