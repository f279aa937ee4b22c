/** The checks of the native binary: whether it loads, its ABI version, and the self-test. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { attempt, messageOf } from '../../base/thrown-value.ts';
import {
  type Candidate,
  candidates,
  type Origin,
  OVERRIDE,
  platformName,
  prebuiltPlatforms,
} from '../../native/binary/binary.ts';
import { root } from '../../native/binary/package-files.ts';
import { GO_ELSEWHERE, GONE, NO_FOLDER } from '../base/command.ts';
import {
  type Check,
  impossible,
  type Loaded,
  type Probe,
  type Problem,
  problem,
  REPORT_BUG,
} from './check.ts';
import { probe } from './probe.ts';

const originTexts: Record<Origin, () => string> = {
  override: () => `named by ${OVERRIDE}`,
  compiled: () => 'compiled on this machine',
  prebuilt: () => `prebuilt for ${platformName()}`,
};

/** The published binaries are cross-built against this glibc. */
const CROSS_BUILT = '2.17';

/** How the binary came to be, with the glibc that it needs, if it needs one. */
function originOf({ origin, path }: Candidate): string {
  const text = originTexts[origin]();
  const glibc = neededGlibc(path);
  if (glibc === undefined) return text;
  const isCross = Number(glibc.slice(2)) <= Number(CROSS_BUILT.slice(2));
  if (origin === 'prebuilt' && !isCross) {
    return `${text}, but built on the machine that packed it; needs glibc ${glibc}`;
  }
  return `${text}; needs glibc ${origin === 'prebuilt' ? CROSS_BUILT : glibc}`;
}

const remedies: Record<Origin, string> = {
  override: `set ${OVERRIDE} to a binary of this version of allstop, or unset it`,
  compiled: 'run npx allstop build again',
  prebuilt: 'reinstall allstop',
};

/** The path of the binary, why the loader chose it, and the platforms with a prebuilt binary. */
function describe(from: Candidate | undefined): Pick<Check, 'target' | 'detail'> {
  const here = `prebuilt here: ${prebuiltPlatforms().join(', ') || 'none'}`;
  if (from === undefined) return { detail: here };
  return { target: from.path, detail: `${originOf(from)}; ${here}` };
}

function loadedCheck({ from, passedOver }: Loaded): Check {
  const check: Check = { name: 'binary', ok: true, ...describe(from) };
  for (const other of passedOver) check.detail += `; tried before, does not load: ${other}`;
  return check;
}

function failedCheck({
  from,
  cause,
  remedy = remedies[from?.origin ?? 'prebuilt'],
}: Problem): Check {
  return problem({ name: 'binary', ...describe(from) }, cause, remedy);
}

const OUT_OF_MEMORY = /\bOOM\b|out of memory|virtual memory|cannot allocate/i;
const MORE_MEMORY =
  'give the process more memory and address space: raise ulimit -v, or the limit of the container';

/** What probe.ts says of a process that was too slow. */
const LATE = /\bdid not answer within\b/;
const TRY_AGAIN = 'try again when the machine is less busy';

/** What to do where the machine is at fault. @returns undefined if the binary may be */
function remedyOfMachine(crash: string): string | undefined {
  if (LATE.test(crash)) return TRY_AGAIN;
  return OUT_OF_MEMORY.test(crash) ? MORE_MEMORY : undefined;
}

function crashedCheck(crash: string): Check {
  const from = candidates().find(({ exists }) => exists);
  const cause = `the process that loaded it ${crash}`;
  return failedCheck({ from, cause, remedy: remedyOfMachine(crash) });
}

/** The ABI version of allstop.h, the header against which native addons are compiled. */
function headerAbi(): string {
  const header = readFileSync(join(root(), 'native/include/allstop/allstop_abi.h'), 'utf8');
  const number = (name: string): string | undefined =>
    new RegExp(`^#define ALLSTOP_ABI_${name} (\\d+)u`, 'm').exec(header)?.[1];
  return `${number('MAJOR')}.${number('MINOR')}`;
}

function abiCheck({ abi, from }: Loaded): Check {
  const check = { name: 'abi', target: `version ${abi ?? 'unknown'}` };
  let header: string;
  try {
    header = headerAbi();
  } catch (error) {
    return problem(check, `the C header is missing: ${messageOf(error)}`, 'reinstall allstop');
  }
  if (abi === header) return { ...check, ok: true, detail: 'as in allstop.h' };
  const cause = `allstop.h has version ${header}: the binary belongs to another version of the package`;
  return problem(check, cause, remedies[from.origin]);
}

const SEE_PERMISSIONS = "do what the check 'permissions' says";
const SELF_TEST = 'a worker stops its coordinator and is joined';

function selfTestCheck({ tested, untested, crash }: Probe, isRestricted: boolean): Check {
  const check = { name: 'self-test', detail: SELF_TEST };
  if (tested !== undefined && crash === undefined) {
    return { ...check, ok: true, detail: `${SELF_TEST}, in ${tested.ms} ms` };
  }
  const cause = untested ?? `the process ${crash}`;
  if (NO_FOLDER.test(cause)) return problem(check, `${GONE}: ${cause}`, GO_ELSEWHERE);
  const remedy = isRestricted ? SEE_PERMISSIONS : (remedyOfMachine(cause) ?? REPORT_BUG);
  return problem(check, cause, remedy);
}

/** If `isRestricted` (the check of permissions has failed), no child process is started. */
export async function binaryChecks(isRestricted: boolean, timeoutMs?: number): Promise<Check[]> {
  try {
    const found = await probe({ inChild: !isRestricted, timeoutMs });
    const { failed, loaded, crash = 'ended' } = found;
    if (failed !== undefined) {
      return [failedCheck(isRestricted ? { ...failed, remedy: SEE_PERMISSIONS } : failed)];
    }
    if (loaded === undefined) return [crashedCheck(crash)];
    return [loadedCheck(loaded), abiCheck(loaded), selfTestCheck(found, isRestricted)];
  } catch (error) {
    return [impossible('binary', error)];
  }
}

// The version of glibc that a native binary needs, as the binary itself says.

/** The names of the versions of glibc's symbols stand in the binary as text. */
const VERSION = /GLIBC_2\.(\d+)(?![\d.])/g;

/** @returns "2.36"; undefined if the file cannot be read or needs no glibc */
function neededGlibc(path: string): string | undefined {
  const text = attempt(() => readFileSync(path, 'latin1')) ?? '';
  const minors = [...text.matchAll(VERSION)].map(([, minor]) => Number(minor));
  return minors.length === 0 ? undefined : `2.${Math.max(...minors)}`;
}
