/** Writes the page of a timeline, and says what is on it. */

import { existsSync, realpathSync, writeFileSync } from 'node:fs';
import { lanesOf } from '../../coordinator/timeline/lanes.ts';
import { counted, fitTerminal } from '../../coordinator/words.ts';
import { CommandError, type CommandResult } from '../base/command.ts';
import { pageOf } from './page.ts';
import { readTimeline } from './read-timeline.ts';

export function writePage(file: string, output: string): CommandResult {
  if (existsSync(output) && realpathSync(file) === realpathSync(output)) {
    throw new CommandError(`'${output}' is the timeline itself: give the page another name`);
  }
  const timeline = readTimeline(file);
  const page = pageOf(timeline);
  try {
    writeFileSync(output, page);
  } catch (error) {
    throw new CommandError(`Cannot write '${output}': ${(error as Error).message}`);
  }
  const threads = lanesOf(timeline.events).length;
  const events = timeline.events.length;
  return {
    text: `${fitTerminal([`${output}: ${counted(events, 'event')} of ${counted(threads, 'thread')}`])}\n`,
    json: { output, coordinator: timeline.coordinator, events, threads },
  };
}
