/** The machine, the versions and the commit, on which the numbers depend. */

import { execFileSync } from 'node:child_process';
import { arch, availableParallelism, cpus, getPriority, platform, release } from 'node:os';
import { fileURLToPath } from 'node:url';

const cwd = fileURLToPath(new URL('../..', import.meta.url));

/** What the command prints, or undefined if there is no such program. */
function outputOf(command, ...args) {
  try {
    return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    return undefined;
  }
}

/** The pictures and the page itself do not count: they are what is being made. */
function commit() {
  const head = outputOf('git', 'rev-parse', '--short=12', 'HEAD');
  if (head === undefined) return 'no commit';
  const paths = ['--', '.', ':!docs/benchmarks.md', ':!docs/benchmarks'];
  const changes = outputOf('git', 'status', '--porcelain', ...paths);
  return changes === '' ? `commit ${head}` : `commit ${head}, with changes`;
}

export function environment() {
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: commit(),
    machine: `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors`,
    system: `${platform()} ${arch()} ${release()}`,
    node: `Node ${process.version}, V8 ${process.versions.v8}`,
    compiler: outputOf('c++', '--version')?.split('\n')[0] ?? 'no compiler',
    priority: getPriority(),
  };
}
