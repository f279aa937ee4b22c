/** The exit code of this process; in a Worker, of that worker. */

/** Sets the exit code, unless one is set that is not 0. @returns whether it has */
export function failWith(exitCode: number): boolean {
  const isFree = Number(process.exitCode ?? 0) === 0;
  if (isFree) process.exitCode = exitCode;
  return isFree;
}
