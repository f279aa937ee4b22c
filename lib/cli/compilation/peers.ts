/** Finds the packages that only `allstop build` needs: optional peers, which the user installs. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { CommandError } from '../base/command.ts';

export type Peers = { cmakeJs: string; nodeAddonApi: string };

/**
 * The modules from which a peer is looked for: the user's project, then this package, beside
 * which a package manager may have installed the peer where the project cannot find it.
 */
const places = [createRequire(join(process.cwd(), 'package.json')), createRequire(import.meta.url)];

function manifestOf(name: string): string | undefined {
  for (const place of places) {
    try {
      return place.resolve(`${name}/package.json`);
    } catch {
      // Not there: try the next place.
    }
  }
  return undefined;
}

/**
 * The script of cmake-js, and the folder of node-addon-api's headers.
 *
 * @throws CommandError: packages are missing; the message has their names and the remedy
 */
export function findPeers(): Peers {
  const cmakeJs = manifestOf('cmake-js');
  const nodeAddonApi = manifestOf('node-addon-api');
  if (cmakeJs !== undefined && nodeAddonApi !== undefined) {
    const { bin } = JSON.parse(readFileSync(cmakeJs, 'utf8')) as { bin: { 'cmake-js': string } };
    return {
      cmakeJs: join(dirname(cmakeJs), bin['cmake-js']),
      nodeAddonApi: dirname(nodeAddonApi),
    };
  }
  const missing = [
    ...(cmakeJs === undefined ? ['cmake-js'] : []),
    ...(nodeAddonApi === undefined ? ['node-addon-api'] : []),
  ];
  throw new CommandError(
    [
      `${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} needed to compile, but not installed in ${process.cwd()}`,
      `What to do: npm install --save-dev ${missing.join(' ')}`,
    ].join('\n'),
  );
}
