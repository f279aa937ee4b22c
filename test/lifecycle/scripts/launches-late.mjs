// A launcher as nodemon on a busy machine: it passes signals on to the program 700 ms later.
import { spawn } from 'node:child_process';

const child = spawn(process.execPath, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => setTimeout(() => child.kill(signal), 700));
}
child.on('exit', () => process.exit());
