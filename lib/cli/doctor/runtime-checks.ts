/** The checks that work without the native binary: runtime, platform, Node-API, permissions. */

import { sep } from 'node:path';
import { codeOf, fieldOf, textOf } from '../../base/thrown-value.ts';
import { libc, NODE_API, platformName } from '../../native/binary/binary.ts';
import type { Check } from './check.ts';

const OLDEST = '20.19.0';

function runtimeCheck(): Check {
  const { title, version } = runtime();
  const node = process.versions.node;
  const target = title === 'Node.js' ? `${title} ${node}` : `${title} ${version}`;
  const check = { name: 'runtime', ok: atLeast(node, OLDEST), target };
  if (!check.ok) {
    return {
      ...check,
      cause: `Node.js ${node} is too old`,
      remedy: 'use Node.js 20.19 or later',
    };
  }
  return title === 'Node.js' ? check : { ...check, detail: `compatible with Node.js ${node}` };
}

/** Undefined where it is not known: musl has no such version, and Deno reports an invented one. */
function glibcVersion(): string | undefined {
  const { report } = process;
  if (report === undefined || runtime().title === 'Deno') return undefined;
  // With the network part, the report would look up the hosts of open connections in the DNS.
  Reflect.set(report, 'excludeNetwork', true);
  return textOf(fieldOf(fieldOf(report.getReport(), 'header'), 'glibcVersionRuntime'));
}

function platformCheck(): Check {
  const check = { name: 'platform', ok: true, target: platformName() };
  const version = libc() === 'glibc' ? glibcVersion() : undefined;
  return version === undefined ? check : { ...check, detail: `glibc ${version}` };
}

function nodeApiCheck(): Check {
  const version = process.versions['napi'];
  const ok = Number(version) >= NODE_API;
  const check = { name: 'node-api', ok, target: `version ${version}` };
  if (ok) return check;
  return {
    ...check,
    cause: `the binary needs Node-API version ${NODE_API}`,
    remedy: 'use Node.js 20.19 or later',
  };
}

/** Whether this Node refuses all addons. It then refuses even a folder, without looking at it. */
function refusesAddons(): boolean {
  try {
    process.dlopen({ exports: {} }, sep); // a folder, which cannot be loaded as an addon
    return false;
  } catch (error) {
    return codeOf(error) === 'ERR_DLOPEN_DISABLED';
  }
}

function nodePermissions(): Check {
  const name = 'permissions';
  // Undefined unless Node runs with its permission model.
  const permission = process.permission as typeof process.permission | undefined;
  const noAddons = refusesAddons();
  if (permission === undefined) {
    if (!noAddons) return { name, ok: true, detail: 'nothing is restricted' };
    const remedy = 'run Node without --no-addons (also look in NODE_OPTIONS)';
    return { name, ok: false, cause: '--no-addons forbids native addons', remedy };
  }
  const noWorkers = !permission.has('worker');
  const who = "Node's permission model";
  if (noAddons) {
    return {
      name,
      ok: false,
      cause: `${who}, or --no-addons, forbids native addons${noWorkers ? ', and workers' : ''}`,
      remedy: `run Node with --allow-addons${noWorkers ? ' --allow-worker' : ''}, without --no-addons`,
    };
  }
  if (noWorkers) {
    return {
      name,
      ok: false,
      cause: `${who} forbids workers`,
      remedy: 'run Node with --allow-worker',
    };
  }
  return { name, ok: true, detail: 'native addons and workers are allowed' };
}

type Deno = { permissions: { querySync(what: { name: string }): { state: string } } };

function denoPermissions({ permissions }: Deno): Check {
  const missing = ['ffi', 'read', 'env'].filter(
    (name) => permissions.querySync({ name }).state !== 'granted',
  );
  const name = 'permissions';
  if (missing.length === 0) return { name, ok: true, detail: 'native addons are allowed' };
  return {
    name,
    ok: false,
    cause: `Deno runs without these permissions: ${missing.join(', ')}`,
    remedy: `run deno with ${missing.map((what) => `--allow-${what}`).join(' ')}`,
  };
}

function permissionsCheck(): Check {
  const { title } = runtime();
  if (title === 'Deno') return denoPermissions((globalThis as unknown as { Deno: Deno }).Deno);
  if (title === 'Node.js') return nodePermissions();
  return { name: 'permissions', ok: true, detail: `${title} has no permissions to restrict` };
}

/** The checks in the order in which they run: each relies on the ones before it. */
export const runtimeChecks: Record<string, () => Check> = {
  runtime: runtimeCheck,
  platform: platformCheck,
  'node-api': nodeApiCheck,
  permissions: permissionsCheck,
};

// Which runtime this is. Bun and Deno also set `process.versions.node`.

export type Runtime = { title: 'Node.js' | 'Bun' | 'Deno'; version: string };

export function runtime(): Runtime {
  const { bun, deno }: Record<string, string | undefined> = process.versions;
  if (bun !== undefined) return { title: 'Bun', version: bun };
  if (deno !== undefined) return { title: 'Deno', version: deno };
  return { title: 'Node.js', version: process.versions.node };
}

/** Compares versions such as '20.19.0'; tags such as '-nightly' are ignored. */
export function atLeast(version: string, least: string): boolean {
  const [one, other] = [version, least].map((text) => text.split(/[.-]/).map(Number));
  for (const place of [0, 1, 2]) {
    const difference = (one?.[place] ?? 0) - (other?.[place] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
