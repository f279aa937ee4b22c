/** Messages outside sessions (JSON): taken or refused; what is taken is written and read again. */

import {
  json,
  parseControl,
  parseProbeReply,
  parseReport,
} from '../../../lib/nats/wire/control-messages.ts';
import { changeJson, must } from './oracle.ts';

export const mutate = changeJson;

const KINDS = ['who', 'hello', 'welcome', 'refused', 'probe'] as const;

/** What is read again is written as before. (It need not be equal: -0 is read, and 0 written.) */
function isKept(value: object, parse: (bytes: Uint8Array) => object | undefined): boolean {
  const written = json(value);
  const again = parse(written);
  return again !== undefined && Buffer.compare(json(again), written) === 0;
}

export function fuzz(bytes: Uint8Array): void {
  const control = parseControl(bytes, ...KINDS);
  if (control !== undefined) {
    must(KINDS.includes(control.kind), 'the kind is known');
    must(
      isKept(control, (written) => parseControl(written, ...KINDS)),
      'a message is kept',
    );
    for (const kind of KINDS) {
      must(
        (parseControl(bytes, kind) !== undefined) === (kind === control.kind),
        'a message is of one kind',
      );
    }
    if (control.kind === 'hello') {
      must(control.info.addresses.length <= 1000, 'a node has a limited number of addresses');
    }
  }
  const reply = parseProbeReply(bytes);
  if (reply !== undefined) {
    must(isKept(reply, parseProbeReply), 'a reply to a probe is kept');
  }
  const report = parseReport(bytes);
  if (report !== undefined) {
    must(isKept(report, parseReport), 'a report is kept');
    for (const { since } of [...report.report.tasks, ...report.turnedAway]) {
      must(!Number.isNaN(since.getTime()), 'a report has valid times');
    }
  }
}
