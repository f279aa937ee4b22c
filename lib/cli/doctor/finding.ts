/** What was found when the binary was loaded and used. */

import type { Candidate } from '../../native/binary/binary.ts';

/** Of a binary that loads: which it is, and what the others before it said. */
export type Loaded = { from: Candidate; abi: string | undefined; passedOver: string[] };
export type Problem = { from?: Candidate | undefined; cause: string; remedy?: string };

/** What a probe tells, in this order; after a failure or a crash nothing more comes. */
export type Finding =
  | { loaded: Loaded }
  | { failed: Problem }
  | { tested: { ms: number } }
  | { untested: string };

/** `crash`: how the child ended, if before it had told all, or not as it should. */
export type Probe = {
  loaded?: Loaded;
  failed?: Problem;
  tested?: { ms: number };
  untested?: string;
  crash?: string;
};
