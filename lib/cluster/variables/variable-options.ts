/** The arguments of `cluster.variable`. */

import { checkDuration, checkInteger, checkOptions, checkString } from '../../base/arguments.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';

export type VariableOptions = {
  /**
   * The index of the parameter server that keeps the variable. By default its name decides, and one
   * of more than 1 MiB is on several servers, each with a range of its elements. A LocalStrategy has
   * none, and ignores it.
   */
  ps?: number | undefined;
  /**
   * Milliseconds to wait for a parameter server. Default: 60,000. A LocalStrategy has nothing to
   * wait for.
   */
  timeoutMs?: number | undefined;
};

/** @throws TypeError, RangeError, InvalidArgumentError */
export function checkVariableOptions(name: unknown, options: unknown): void {
  checkString('name', name);
  if (name === '') throw new InvalidArgumentError('The name of a variable is empty');
  const { ps, timeoutMs } = checkOptions('options', options as VariableOptions | undefined, [
    'ps',
    'timeoutMs',
  ]);
  if (ps !== undefined) checkInteger('options.ps', ps, 0, Number.MAX_SAFE_INTEGER);
  if (timeoutMs !== undefined) checkDuration('options.timeoutMs', timeoutMs);
}
