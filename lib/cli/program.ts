#!/usr/bin/env node

/** `npx allstop`: runs the command that the command line asks for, and prints its result. */

import { codeOf, messageOf } from '../base/thrown-value.ts';
import { fitTerminal } from '../coordinator/words.ts';
import { CommandError, UsageError } from './base/command.ts';
import { runCommandLine } from './main.ts';

/**
 * Ignores write errors of stdout and stderr. A program that read our output through a pipe may have
 * ended (EPIPE): that must neither end a worker nor change the exit code.
 */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}

outliveReaders();
try {
  const { text, exitCode = 0, lingers } = await runCommandLine(process.argv.slice(2));
  process.exitCode = exitCode;
  process.stdout.write(text, (error) => {
    // A reader that has ended (`| head`) has what it wanted. A full disk has not.
    if (error && codeOf(error) !== 'EPIPE') {
      process.stderr.write(`allstop: the output could not be written: ${error.message}\n`);
      process.exitCode = 1;
    }
    if (lingers) process.stderr.write('', () => process.exit());
  });
} catch (error) {
  const said = fitTerminal(`allstop: ${messageOf(error)}`.split('\n'));
  if (error instanceof UsageError) {
    process.stderr.write(`${said}\n${error.usage}`);
    process.exitCode = 2;
  } else {
    process.stderr.write(`${said}\n`);
    process.exitCode = error instanceof CommandError ? error.exitCode : 1;
  }
}
