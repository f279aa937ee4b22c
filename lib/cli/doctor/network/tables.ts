/** The checks of a network for people: what there is in tables, and what to do below them. */

import Table from 'cli-table3';
import { RUNGS } from '../../../cluster/nats/connection/connection-failure.ts';
import { type Check, paint } from '../check.ts';

const NONE = '-';
/** What is looked at before any server. */
const HERE = ['binary', 'client'];

const isRung = (name: string): boolean => (RUNGS as readonly string[]).includes(name);
const mark = ({ ok }: Check): string => paint(ok ? 'green' : 'red', ok ? 'ok' : 'NOT OK');

function tableOf(head: string[], rows: string[][]): string {
  // Without frames: it goes into mails and tickets.
  const empty = Object.fromEntries(
    ['top', 'bottom', 'left', 'right', 'mid', 'middle'].flatMap((place) =>
      ['', '-left', '-mid', '-right'].map((part) => [`${place}${part}`, '']),
    ),
  );
  const table = new Table({
    head,
    chars: { ...empty, middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  table.push(...rows);
  const lines = table.toString().split('\n');
  return lines.map((line) => line.trimEnd()).join('\n');
}

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
  if (problems.length === 0) return 'Nothing blocks.';
  const told = problems.map(
    ({ name, target, cause, remedy }, at) =>
      `${at + 1}. ${[name, target].join(' ').trimEnd()}\n   cause:  ${cause}\n   remedy: ${remedy}`,
  );
  return ['What blocks:', ...told].join('\n');
}

/** Names and errors have come from elsewhere: what a terminal would obey is taken out. */
function plain(check: Check): Check {
  const entries = Object.entries(check).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.replaceAll(/\p{Cc}+/gu, ' ') : value,
  ]);
  return Object.fromEntries(entries) as Check;
}

/** As a person reads them: from the servers to the nodes, and last what to do. */
export function tables(found: Check[]): string {
  const checks = found.map(plain);
  const here = checks
    .filter(({ name }) => HERE.includes(name))
    .map((check) => `${check.name}  ${mark(check)}  ${check.target ?? ''}`.trimEnd());
  const parts = [here.join('\n'), serversOf(checks), othersOf(checks), problemsOf(checks)];
  return `${parts.filter((part) => part !== undefined).join('\n\n')}\n`;
}
