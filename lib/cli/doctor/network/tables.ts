/**
 * Prints the checks of `allstop doctor --servers` as tables, with the problems and remedies below.
 */

import { fitTerminal } from '../../../coordinator/words.ts';
import { RUNGS } from '../../../nats/connection/connection-failure.ts';
import { tableOf } from '../../base/table.ts';
import { type Check, paint } from '../check.ts';

const NONE = '-';
/** TLS, or credentials, that neither side asked for: nothing was checked, and nothing protects. */
const NOT_USED = 'none';
/** The checks of this machine, which belong to no server. */
const HERE = ['binary', 'client'];

const isRung = (name: string): boolean => (RUNGS as readonly string[]).includes(name);
const mark = ({ ok, unused }: Check): string =>
  unused === true ? NOT_USED : paint(ok ? 'green' : 'red', ok ? 'ok' : 'NOT OK');

function serversOf(checks: Check[]): string | undefined {
  const rungs = checks.filter(({ name }) => isRung(name));
  const servers = [...new Set(rungs.map(({ target }) => target as string))];
  if (servers.length === 0) return undefined;
  const rows = servers.map((server) => {
    const own = rungs.filter(({ target }) => target === server);
    const cells = RUNGS.map((rung) => own.find(({ name }) => name === rung));
    return [server, ...cells.map((check) => (check === undefined ? NONE : mark(check)))];
  });
  return tableOf(['server', ...RUNGS], rows);
}

function othersOf(checks: Check[]): string | undefined {
  const rows = checks
    .filter(({ name }) => !isRung(name) && !HERE.includes(name))
    .map((check) => [check.name, check.target ?? NONE, mark(check), check.detail ?? NONE]);
  return rows.length === 0 ? undefined : tableOf(['cluster', '', '', ''], rows);
}

function problemsOf(checks: Check[]): string {
  const problems = checks.filter(({ ok }) => !ok);
  if (problems.length === 0) return 'No problem found.';
  const texts = problems.map(
    ({ name, target, cause, remedy }, at) =>
      `${at + 1}. ${[name, target].join(' ').trimEnd()}\n   Cause: ${cause}\n   What to do: ${remedy}`,
  );
  return ['Problems:', ...texts].join('\n');
}

/**
 * Replaces control characters: names and errors come from other machines, and could steer a
 * terminal.
 */
function plain(check: Check): Check {
  const entries = Object.entries(check).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.replaceAll(/\p{Cc}+/gu, ' ') : value,
  ]);
  return Object.fromEntries(entries) as Check;
}

/** The whole text: this machine, the servers, the cluster, and last the problems with remedies. */
export function tables(found: Check[]): string {
  const checks = found.map(plain);
  const here = checks
    .filter(({ name }) => HERE.includes(name))
    .map((check) => `${check.name}  ${mark(check)}  ${check.target ?? ''}`.trimEnd());
  const parts = [here.join('\n'), serversOf(checks), othersOf(checks), problemsOf(checks)];
  const text = parts.filter((part) => part !== undefined).join('\n\n');
  return `${fitTerminal(text.split('\n'))}\n`;
}
