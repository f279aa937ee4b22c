/** The exit code of this process; in a Worker, of that worker. */

/** Sets the exit code, unless the program has set one that is not 0. */
export function failWith(exitCode: number): void {
  if (Number(process.exitCode ?? 0) === 0) process.exitCode = exitCode;
}
