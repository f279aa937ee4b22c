/** `allstop doctor` without options: runs all checks of this machine, in order. */

import { sep } from 'node:path';
import { codeOf, fieldOf, textOf } from '../../base/thrown-value.ts';
import { libc, NODE_API, platformName } from '../../native/binary/binary.ts';
import type { CommandResult } from '../base/command.ts';
import { binaryChecks } from './binary-checks.ts';
import { type Check, impossible, problem, QUIRK, report } from './check.ts';

function checkOrCause([name, check]: [string, () => Check]): Check {
  try {
    return check();
  } catch (error) {
    return impossible(name, error);
  }
}

/** `withNotes`: the text lists what is peculiar to this runtime; else it says how many notes there are. */
export async function diagnose(withNotes: boolean): Promise<CommandResult> {
  const surroundings = Object.entries(runtimeChecks).map(checkOrCause);
  const fails = (name: string): boolean =>
    surroundings.some((check) => check.name === name && !check.ok);
  const binary = await binaryChecks(fails('permissions'));
  return report([...surroundings, ...binary, ...quirkChecks()], withNotes);
}

// Known problems of each runtime, with a way around them where there is one.

type Quirk = {
  /** Undefined: every runtime has the problem. */
  runtime?: Runtime['title'];
  platform?: NodeJS.Platform;
  /** The first version with the problem, and the first version without it. */
  since?: string;
  until?: string;
  /** One sentence, which begins with what happens. */
  text: string;
};

/**
 * Sources: for Deno, Bun and Node before 24 our own tests on Linux; for macOS the issue named in
 * the text; for Windows the documentation of Node.
 */
const quirks: Quirk[] = [
  {
    runtime: 'Node.js',
    until: '24.0.0',
    text: 'the process aborts when a native thread uses a thread-safe function whose worker has ended: use allstop_threadsafe_function.hpp in addons of your own',
  },
  {
    runtime: 'Node.js',
    platform: 'darwin',
    since: '24.15.0',
    until: '24.20.0',
    text: 'the process may abort when a worker ends while a call of a thread-safe function is on its way (nodejs/node#65100): use Node.js 24.20 or later',
  },
  {
    runtime: 'Node.js',
    until: '24.0.0',
    text: "there is no 'await using' for a coordinator: use Coordinator.run()",
  },
  {
    runtime: 'Bun',
    text: 'postMessage() drops the cause of an error; errors that a coordinator carries keep theirs',
  },
  {
    runtime: 'Deno',
    text: "terminate() resolves and 'exit' is emitted before the worker has ended: the worker may still run for a moment after join()",
  },
  {
    runtime: 'Deno',
    text: 'terminate() of a worker kills the child processes that it has started',
  },
  {
    runtime: 'Deno',
    text: 'the uncaught error of a worker is also printed to stderr when the coordinator has recorded it',
  },
  {
    platform: 'win32',
    text: 'there are no POSIX signals: stopOnSignals() only works while the event loop is not blocked',
  },
];

function quirkChecks(): Check[] {
  const { title, version } = runtime();
  return quirks
    .filter(
      (quirk) =>
        (quirk.runtime ?? title) === title &&
        (quirk.platform ?? process.platform) === process.platform &&
        (quirk.since === undefined || atLeast(version, quirk.since)) &&
        (quirk.until === undefined || !atLeast(version, quirk.until)),
    )
    .map(({ text }) => ({ name: QUIRK, ok: true, detail: text }));
}

// The checks that work without the native binary: runtime, platform, Node-API, permissions.

/** A Node that is too old does not come so far: it cannot load the package, and says so. */
function runtimeCheck(): Check {
  const { title, version } = runtime();
  const check = { name: 'runtime', ok: true, target: `${title} ${version}` };
  if (title === 'Node.js') return check;
  return { ...check, detail: `compatible with Node.js ${process.versions.node}` };
}

/** Undefined where it is not known: musl has no such version, and Deno reports an invented one. */
function glibcVersion(): string | undefined {
  const { report: reporter } = process;
  if (reporter === undefined || runtime().title === 'Deno') return undefined;
  // With the network part, the report would look up the hosts of open connections in the DNS.
  Reflect.set(reporter, 'excludeNetwork', true);
  return textOf(fieldOf(fieldOf(reporter.getReport(), 'header'), 'glibcVersionRuntime'));
}

function platformCheck(): Check {
  const check = { name: 'platform', ok: true, target: platformName() };
  const version = libc() === 'glibc' ? glibcVersion() : undefined;
  return version === undefined ? check : { ...check, detail: `glibc ${version}` };
}

function nodeApiCheck(): Check {
  const version = process.versions['napi'];
  const check = { name: 'node-api', target: `version ${version}` };
  if (Number(version) >= NODE_API) return { ...check, ok: true };
  const cause = `the binary needs Node-API version ${NODE_API}`;
  return problem(check, cause, 'use Node 20.19, or 22.3 or later');
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
    return problem({ name }, '--no-addons forbids native addons', remedy);
  }
  const noWorkers = !permission.has('worker');
  const who = "Node's permission model";
  if (noAddons) {
    const cause = `${who}, or --no-addons, forbids native addons${noWorkers ? ', and workers' : ''}`;
    const remedy = `run Node with --allow-addons${noWorkers ? ' --allow-worker' : ''}, without --no-addons`;
    return problem({ name }, cause, remedy);
  }
  if (!noWorkers) return { name, ok: true, detail: 'native addons and workers are allowed' };
  return problem({ name }, `${who} forbids workers`, 'run Node with --allow-worker');
}

type Deno = { permissions: { querySync(what: { name: string }): { state: string } } };

function denoPermissions({ permissions }: Deno): Check {
  const missing = ['ffi', 'read', 'env'].filter(
    (name) => permissions.querySync({ name }).state !== 'granted',
  );
  const name = 'permissions';
  if (missing.length === 0) return { name, ok: true, detail: 'native addons are allowed' };
  const cause = `Deno runs without these permissions: ${missing.join(', ')}`;
  const remedy = `run deno with ${missing.map((what) => `--allow-${what}`).join(' ')}`;
  return problem({ name }, cause, remedy);
}

function permissionsCheck(): Check {
  const { title } = runtime();
  if (title === 'Deno') return denoPermissions((globalThis as unknown as { Deno: Deno }).Deno);
  if (title === 'Node.js') return nodePermissions();
  return { name: 'permissions', ok: true, detail: `${title} has no permissions to restrict` };
}

/** The checks in the order in which they run: each relies on the ones before it. */
const runtimeChecks: Record<string, () => Check> = {
  runtime: runtimeCheck,
  platform: platformCheck,
  'node-api': nodeApiCheck,
  permissions: permissionsCheck,
};

// Which runtime this is. Bun and Deno also set `process.versions.node`.

type Runtime = { title: 'Node.js' | 'Bun' | 'Deno'; version: string };

function runtime(): Runtime {
  const { bun, deno }: Record<string, string | undefined> = process.versions;
  if (bun !== undefined) return { title: 'Bun', version: bun };
  if (deno !== undefined) return { title: 'Deno', version: deno };
  return { title: 'Node.js', version: process.versions.node };
}

/** Compares versions such as '20.19.0'; tags such as '-nightly' are ignored. */
function atLeast(version: string, least: string): boolean {
  const [one, other] = [version, least].map((text) => text.split(/[.-]/).map(Number));
  const differences = [0, 1, 2].map((place) => (one?.[place] ?? 0) - (other?.[place] ?? 0));
  return (differences.find((difference) => difference !== 0) ?? 0) >= 0;
}
