/**
 * The command line. Arguments, one behind the other with a NUL between them, are a command, a text
 * to print, or a UsageError (exit code 2, with its message and the usage). Nothing is done here.
 */

import { CommandError, UsageError } from '../../../lib/cli/base/command.ts';
import { clusterOf, connectionOf } from '../../../lib/cli/base/servers.ts';
import { type Request, readCommandLine } from '../../../lib/cli/main.ts';
import { checkOptions } from '../../../lib/cli/worker/serve.ts';
import { must, type Random, refusal } from './oracle.ts';

const WORDS = [
  'worker',
  'doctor',
  'build',
  'include',
  'cmake',
  '--json',
  '--help',
  '-h',
  '-v',
  '-hv',
  '--',
  '--version',
  '--module',
  '--servers',
  '--cluster',
  '--job',
  '--task',
  '--spec',
  '--slots',
  '--module=m.mjs',
  '--servers=nats://127.0.0.1:4222',
  '--cluster=c',
  '--job=ps',
  '--task=0',
  '--slots=4',
  '--relative',
  'nats://a:1,tls://b:2',
  'nats://u:p@h',
  '::',
  '-1',
  '1e3',
  '0x1',
  '--no-json',
  '--json=x',
  '--__proto__',
  '--constructor',
  '',
  '=',
  '--=',
  '-',
  '--servers=',
];

/** Adds, replaces or removes an argument. */
export function mutate(bytes: Uint8Array, random: Random): Uint8Array {
  const args = Buffer.from(bytes).toString('utf8').split('\0');
  const word = WORDS[random(WORDS.length)] as string;
  args.splice(random(args.length + 1), random(2), ...(random(4) === 0 ? [] : [word]));
  return Buffer.from(args.join('\0'));
}

function check(error: Error | undefined): void {
  if (error === undefined) return;
  must(error.message.length > 0, 'a refusal says why');
  must(!/\n {4}at /.test(error.message), 'a refusal shows no stack');
}

export function fuzz(bytes: Uint8Array): void {
  const args = Buffer.from(bytes).toString('utf8').split('\0');
  let request: Request | undefined;
  check(
    refusal(() => {
      request = readCommandLine(args);
    }, UsageError),
  );
  if (request === undefined) return;
  if ('text' in request) {
    must(request.text.endsWith('\n'), 'a text ends with a newline');
    return;
  }
  const { command, options } = request;
  for (const name of Object.keys(options)) {
    must(name === 'json' || command.options.some((each) => each === name), `${name} is an option`);
  }
  if (command.options.includes('module')) {
    check(
      refusal(
        () => {
          const { slots, task = 0, cluster, job } = checkOptions(options);
          must(Number.isInteger(slots) && slots >= 1 && slots <= 1024, 'slots are in their range');
          must(Number.isInteger(task) && task >= 0 && task <= 1_000_000, 'a task is in its range');
          must(/^[\w-]{1,64}$/.test(cluster), 'a cluster has a valid name');
          must(job === 'worker' || job === 'ps', 'a job is one of the two');
        },
        UsageError,
        CommandError,
      ),
    );
  } else {
    const { servers, cluster } = options;
    if (servers !== undefined) check(refusal(() => void connectionOf(servers), UsageError));
    if (cluster !== undefined) check(refusal(() => void clusterOf(cluster), UsageError));
  }
}
