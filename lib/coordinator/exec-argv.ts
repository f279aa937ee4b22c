/** Which of the program's own options those inherit that it starts. */

/** Options about the program itself: its text, and the port of its debugger. */
const WITH_VALUE = /^(?:-e|-p|-pe|--eval|--print|--input-type|--inspect-port|--debug-port)$/;
const BY_ITSELF = /^--(?:eval|print|input-type|inspect|debug-port)/;
/** Node refuses it to whoever runs a file, and does not spare worker threads. */
const REFUSED = /^--input-type\b/;

/** Those of a process that runs a file: or it would run the program's text, for ever. */
export function execArgvOfFile(): string[] {
  const left: string[] = [];
  for (let at = 0; at < process.execArgv.length; at++) {
    const arg = process.execArgv[at] as string;
    if (WITH_VALUE.test(arg)) at += 1;
    else if (!BY_ITSELF.test(arg)) left.push(arg);
  }
  return left;
}

/** Those of a worker thread that runs a file; undefined: as Node has it. */
export function execArgvOfWorker(): string[] | undefined {
  return process.execArgv.some((arg) => REFUSED.test(arg)) ? execArgvOfFile() : undefined;
}

/** Without those that Node refuses to worker threads, as they are about the whole process. */
export function withoutRefused(execArgv: readonly string[], error: unknown): string[] {
  const { code, message } = error as { code?: unknown; message: string };
  if (code !== 'ERR_WORKER_INVALID_EXEC_ARGV') throw error;
  const refused = message.slice(message.indexOf(': ') + 2).split(', ');
  return execArgv.filter((arg) => !refused.includes(arg));
}
