/** The results of loading the native binary and of running the self-test with it. */

import type { Candidate } from '../../native/binary/binary.ts';

/** A binary that loads. `passedOver`: the binaries that were tried before, with their errors. */
export type Loaded = { from: Candidate; abi: string | undefined; passedOver: string[] };
export type Problem = { from?: Candidate | undefined; cause: string; remedy?: string };

/**
 * The messages of a probe: `loaded`, then `tested` or `untested`. `failed` comes in the place of
 * any of them and is the last; after a crash of the probe's process no message comes.
 */
export type Finding =
  | { loaded: Loaded }
  | { failed: Problem }
  | { tested: { ms: number } }
  | { untested: string };

/**
 * All findings of one probe. `crash`: how the child process ended, if that was too early or with an
 * exit code other than 0.
 */
export type Probe = {
  loaded?: Loaded;
  failed?: Problem;
  tested?: { ms: number };
  untested?: string;
  crash?: string;
};
