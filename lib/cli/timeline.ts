/** `allstop timeline FILE -o page.html` draws a timeline as a page. */

import type { Command } from './base/command.ts';

export const timeline: Command = {
  summary: 'draws a timeline as an HTML page',
  help: `Reads FILE and writes one self-contained HTML page: a lane for each thread, the stop as a
line across them, how long each thread took to see the stop and to end, and in red the
threads that a join left behind.

FILE is the JSON of what coord.timeline() returned, or of its toChromeTrace():
  writeFileSync('timeline.json', JSON.stringify(coord.timeline()))`,
  examples: ['npx allstop timeline timeline.json -o timeline.html'],
  argument: 'FILE',
  options: ['output'],
  required: ['output'],
  run: async ({ argument = '', output = '' }) => {
    // Imported here: the other commands need neither the page nor its plotting library.
    const { writePage } = await import('./timeline/page.ts');
    return writePage(argument, output);
  },
};
