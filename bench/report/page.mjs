/** docs/benchmarks.md, whole: written by bench/run.mjs and by nobody else. */

import { judge, missedTable, table } from './table.mjs';

const INTRODUCTION = `# Benchmarks

This page says what a check, a wake-up, a join, an item of a queue, a call of a pool and an idle coordinator cost, each beside the tool that a program would use otherwise. After \`npm run compile\`, \`npm run bench\` measures every row, and writes this page and its pictures.

- \`npm run bench -- --row NAME\` measures one row, \`--list\` names them.
- \`--output FILE\` writes elsewhere, also while other programs use the machine.
- \`--quick\` only shows that every benchmark still runs.

How to read the tables:

- Absolute times change with the machine, so each goal is a ratio. allstop and its peers are measured in turn, sample by sample.
- The value of a round is the median of its samples. A cell shows the median of the rounds, with the quartiles in brackets. A ratio compares the values of one round.
- "Within the spread" means that the median misses the goal and the better quartile meets it.
- These are measurements, not tests: no number fails the command. \`npm run bench:guard\` counts instructions, messages and system calls, and fails when they grow.
- \`npm run bench:history\` counts the instructions of a call and of the import at commits of the history, \`npm run bench:costs\` what each ledger and each option adds to a call: [the costs](https://github.com/allstop/allstop/blob/main/bench/results/costs.md).
- On a machine with two processors trust ratios and orders of magnitude. Waking a sleeping processor takes about 50 µs there, which is most of the time in the rows with eight waiters and more.

The oldest Node that allstop supports has run these benchmarks. [The same run on the newest Node](https://github.com/allstop/allstop/blob/main/bench/results/node-26.md) is in the repository, too.`;

const ALT = {
  ratios: 'A dot for each row: its ratio to the peer with the quartiles, and the line of its goal',
  pools: 'Bars: calls a second and round trips of allstop and of the other pools',
  history:
    'Lines by day of the history: instructions of a call and of the import, with those of Piscina and workerpool',
  sizes: 'Lines: the cost of one item against the number of items',
};

/** The section after which a chart comes. */
const AFTER = {
  history: 'The plain call, each pool alone',
  pools: 'The pool, on NATS',
  sizes: 'Many of a kind',
};

function picture(chart, folder, drawn) {
  if (!drawn.has(`${chart}-light`)) return [];
  return [
    `<picture><source media="(prefers-color-scheme: dark)" srcset="${folder}/${chart}-dark.svg"><img alt="${ALT[chart]}" src="${folder}/${chart}-light.svg"></picture>`,
  ];
}

function count(rows, results) {
  const words = rows.map((row) => {
    const result = results.get(row.name);
    if (result?.ours === undefined) return row.goal === undefined ? '' : 'not measured';
    return judge(row, result).met;
  });
  const of = (word) => words.filter((each) => each === word).length;
  const all = words.filter((word) => word !== '').length;
  const parts = [
    [of('within the spread'), 'within the spread'],
    [of('no'), 'missed'],
    [of('not measured'), 'not measured'],
  ].flatMap(([number, word]) => (number === 0 ? [] : [`${number} ${word}`]));
  return [`${of('yes')} of ${all} goals are met`, ...parts].join('; ');
}

/**
 * @param {object[]} sections of rows.mjs
 * @param {Map<string, object>} results by the name of the row
 * @param {{ environment: object, minutes: number, use: number, folder: string, drawn: Map }} run
 *   `use`: the most processors that others used between two benchmarks; `folder`: the pictures',
 *   relative to the page
 */
export function page(sections, results, { environment, minutes, use, folder, drawn }) {
  const rows = sections.flatMap((section) => section.rows);
  const { date, commit, machine, system, node, compiler, priority } = environment;
  return `${[
    INTRODUCTION,
    `Measured on ${date} at ${commit}, in ${Math.round(minutes)} minutes: ${machine}; ${system}; ${node}; ${compiler}; process priority ${priority}. Other programs used at most ${use.toFixed(2)} processors between the benchmarks.`,
    `**${count(rows, results)}.**`,
    ...picture('ratios', folder, drawn),
    '## Where a goal is missed, and why',
    missedTable(rows, results),
    ...sections.flatMap(({ title, about, rows: some }) => [
      `## ${title}`,
      about,
      table(some, results),
      ...Object.entries(AFTER).flatMap(([chart, section]) =>
        section === title ? picture(chart, folder, drawn) : [],
      ),
    ]),
  ].join('\n\n')}\n`;
}
