/** Which of this process's execArgv its workers and child processes inherit. */

/** Options that are about this process only: the program's text, and the debugger's port. */
const WITH_VALUE = /^(?:-e|-p|-pe|--eval|--print|--input-type|--inspect-port|--debug-port)$/;
const BY_ITSELF = /^--(?:eval|print|input-type|inspect|debug-port)/;
/** Node refuses this option to a process or worker thread that runs a file. */
const REFUSED = /^--input-type\b/;

/** Options for a child process that runs a file: with `--eval` it would run the text instead. */
export function execArgvOfFile(): string[] {
  const left: string[] = [];
  for (let at = 0; at < process.execArgv.length; at++) {
    const arg = process.execArgv[at] as string;
    if (WITH_VALUE.test(arg)) at += 1;
    else if (!BY_ITSELF.test(arg)) left.push(arg);
  }
  return left;
}

/** The options for a worker thread that runs a file. @returns undefined: Node's default will do */
export function execArgvOfWorker(): string[] | undefined {
  return process.execArgv.some((arg) => REFUSED.test(arg)) ? execArgvOfFile() : undefined;
}

/**
 * `execArgv` without the options that Node refuses to worker threads because they are about the
 * whole process. `error` is Node's refusal, which lists them; any other error is thrown again.
 */
export function withoutRefused(execArgv: readonly string[], error: unknown): string[] {
  const { code, message } = error as { code?: unknown; message: string };
  if (code !== 'ERR_WORKER_INVALID_EXEC_ARGV') throw error;
  const refused = message.slice(message.indexOf(': ') + 2).split(', ');
  return execArgv.filter((arg) => !refused.includes(arg));
}
