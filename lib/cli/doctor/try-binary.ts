/** Loads the native binary as a program would, then runs the self-test. */

import { messageOf } from '../../base/thrown-value.ts';
import { candidates } from '../../native/binary/binary.ts';
import { explainFailure } from '../../native/binary/binary-failure.ts';
import { binding, tryLoad } from '../../native/native.ts';
import type { Finding } from './finding.ts';
import { selfTest } from './self-test.ts';

const firstLine = (error: unknown): string => messageOf(error).split('\n')[0] as string;

export async function tryBinary(tell: (finding: Finding) => void): Promise<void> {
  const { from, attempts } = tryLoad();
  if (from === undefined) {
    const { cause, remedy, attempt } = explainFailure(attempts);
    const tried = candidates().find(({ path, origin }) =>
      attempt === undefined ? origin !== 'compiled' : path === attempt.path,
    );
    const said = attempt && firstLine(attempt.error).replace(`${attempt.path}: `, '');
    const why = said === undefined || said === cause ? cause : `${cause} (${said})`;
    tell({ failed: { from: tried, cause: why, remedy } });
    return;
  }
  const passedOver = attempts.map((attempt) => `${attempt.path}: ${firstLine(attempt.error)}`);
  let abi: string | undefined;
  try {
    ({ abi } = binding());
  } catch (error) {
    const cause = `the file is not a binary of this package: ${firstLine(error)}`;
    tell({ failed: { from, cause } });
    return;
  }
  tell({ loaded: { from, abi, passedOver } });
  const began = performance.now();
  try {
    await selfTest();
    tell({ tested: { ms: Math.round(performance.now() - began) } });
  } catch (error) {
    tell({ untested: firstLine(error) });
  }
}
