/** Counts and drops messages that no allstop process of this version sends. */

import { debuglog } from 'node:util';
import { messageOf } from '../../base/thrown-value.ts';

const log = debuglog('allstop');

export class MalformedMessages {
  readonly #receiver: string;
  readonly #cluster: string;
  count = 0;

  /** `receiver`: who drops the messages, for the warning, such as 'The coordinator'. */
  constructor(receiver: string, cluster: string) {
    this.#receiver = receiver;
    this.#cluster = cluster;
  }

  /** Counts a message. Warns about the first only, so that nobody can fill the log from outside. */
  drop(what: string, error?: unknown): void {
    this.count += 1;
    log('%s: dropped %s: %s', this.#cluster, what, error === undefined ? '' : messageOf(error));
    if (this.count > 1) return;
    process.emitWarning(
      `${this.#receiver} of cluster '${this.#cluster}' dropped a malformed message (${what}). ` +
        'Further ones are dropped silently; ' +
        `\`allstop doctor --servers ... --cluster ${this.#cluster}\` shows how many`,
      { code: 'ALLSTOP_MALFORMED_MESSAGE' },
    );
  }
}
