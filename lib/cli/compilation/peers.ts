/** The packages that only `allstop build` needs: optional peers, which the user installs. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { CommandError } from '../base/command.ts';

export type Peers = { cmakeJs: string; nodeAddonApi: string };

/** The project's own first; from the package it is what a package manager hoisted. */
const places = [createRequire(join(process.cwd(), 'package.json')), createRequire(import.meta.url)];

function manifestOf(name: string): string | undefined {
  for (const place of places) {
    try {
      return place.resolve(`${name}/package.json`);
    } catch {
      // Not here.
    }
  }
  return undefined;
}

/**
 * The script of cmake-js, and the folder of node-addon-api's headers.
 *
 * @throws CommandError: which are missing, and the cure
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
      `${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} needed to compile, and not installed in ${process.cwd()}`,
      `Cure: npm install --save-dev ${missing.join(' ')}`,
    ].join('\n'),
  );
}
