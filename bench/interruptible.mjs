/**
 * Which blocking calls a stop ends under an `allstop::Interruptible`, and in how long; whether any
 * other thread gets an EINTR: `node bench/interruptible.mjs [ROUNDS]` prints a table. Linux only.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('native/', import.meta.url));
const build = `${source}build`;

function run(command, ...args) {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${status}\n${stdout}${stderr}`);
  return stdout;
}

run('cmake', '-S', source, '-B', build, '-DCMAKE_BUILD_TYPE=Release');
run('cmake', '--build', build, '--target', 'interruptible', '-j', '2');
process.stdout.write(run(`${build}/interruptible`, ...process.argv.slice(2)));
