/** `allstop doctor --servers`, as users call it. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { ReadinessReport } from 'allstop/cluster';

const ownCli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export type Check = {
  name: string;
  ok: boolean;
  target?: string;
  detail?: string;
  cause?: string;
  remedy?: string;
};

export type Diagnosis = {
  status: number | null;
  ok: boolean;
  checks: Check[];
  report?: ReadinessReport;
};

export type Printed = { status: number | null; stdout: string; stderr: string };

/** `cli`: the CLI of another copy of the package. */
export async function doctor(
  args: string[],
  env: NodeJS.ProcessEnv = {},
  cli = ownCli,
): Promise<Printed> {
  const child = spawn(process.execPath, [cli, 'doctor', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: '', ...env },
  });
  const exited = once(child, 'exit');
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [status] = (await exited) as [number | null];
  return { status, stdout, stderr };
}

export async function diagnose(
  servers: string,
  cluster?: string,
  env: NodeJS.ProcessEnv = {},
  cli = ownCli,
): Promise<Diagnosis> {
  const args = ['--json', '--servers', servers];
  if (cluster !== undefined) args.push('--cluster', cluster);
  const { status, stdout } = await doctor(args, env, cli);
  return { status, ...(JSON.parse(stdout) as Omit<Diagnosis, 'status'>) };
}

export const problemsOf = ({ checks }: Diagnosis): Check[] => checks.filter(({ ok }) => !ok);
