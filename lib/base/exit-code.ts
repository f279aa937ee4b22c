/** The exit code of this process; in a Worker, of that worker. */

/** The exit code that `failWith` has set. */
let own: number | undefined;

/** Sets the exit code, unless one is set that is not 0. @returns whether it has */
export function failWith(exitCode: number): boolean {
  const isFree = Number(process.exitCode ?? 0) === 0;
  if (isFree) {
    process.exitCode = exitCode;
    own = exitCode;
  }
  return isFree;
}

/** The exit code that `failWith` has set; undefined if it has set none, or another one is set. */
export function ownExitCode(): number | undefined {
  return own === process.exitCode ? own : undefined;
}
