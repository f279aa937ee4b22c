/** What is known to be peculiar to a runtime, and what to do about it. */

import { type Check, QUIRK } from './check.ts';
import { atLeast, type Runtime, runtime } from './runtime.ts';

type Quirk = {
  /** Undefined: in all of them. */
  runtime?: Runtime['title'];
  platform?: NodeJS.Platform;
  /** The first version that has it, and the first that has it no longer. */
  since?: string;
  until?: string;
  /** One sentence that begins with what happens. */
  text: string;
};

/**
 * Of Deno and Bun, and of Node before 24, as our tests on Linux have seen them. Of macOS as
 * the issue that is named says; of Windows as its documentation does.
 */
const quirks: Quirk[] = [
  {
    runtime: 'Node.js',
    until: '24.0.0',
    text: 'the process aborts when a native thread uses a thread-safe function whose worker has ended: use allstop_threadsafe_function.hpp in addons of your own',
  },
  {
    runtime: 'Node.js',
    platform: 'darwin',
    since: '24.15.0',
    until: '24.20.0',
    text: 'the process may abort when a worker ends while a call of a thread-safe function is on its way (nodejs/node#65100): use another version of Node.js',
  },
  {
    runtime: 'Node.js',
    until: '24.0.0',
    text: "there is no 'await using' for a coordinator: use Coordinator.run()",
  },
  {
    runtime: 'Bun',
    text: 'postMessage() loses the cause of an error: errors that go by a coordinator keep it',
  },
  {
    runtime: 'Deno',
    text: "terminate() resolves, and 'exit' is emitted, before the worker has ended: it may run on for a moment after join()",
  },
  {
    runtime: 'Deno',
    text: 'the uncaught error of a worker is printed to stderr, although the coordinator has it',
  },
  {
    platform: 'win32',
    text: 'there are no POSIX signals: stopOnSignals() needs an event loop that is not blocked',
  },
];

export function quirkChecks(): Check[] {
  const { title, version } = runtime();
  return quirks
    .filter(
      (quirk) =>
        (quirk.runtime ?? title) === title &&
        (quirk.platform ?? process.platform) === process.platform &&
        (quirk.since === undefined || atLeast(version, quirk.since)) &&
        (quirk.until === undefined || !atLeast(version, quirk.until)),
    )
    .map(({ text }) => ({ name: QUIRK, ok: true, detail: text }));
}
