/** Finds `allstop-worker.js`, which looper threads, queue runners and cluster workers execute. */

import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { UnavailableError } from '../../errors/errors.ts';
import { besideThis, look, ownFolders, packageFolder } from '../../native/binary/package-files.ts';

const WORKER = 'allstop-worker';
let workerFound: URL | undefined;

/**
 * The file that the package's own workers (threads and processes) execute. It lies beside this
 * code, or beside the bundle or the program that this code was bundled into.
 *
 * @throws UnavailableError: the file is missing
 */
export function workerEntry(): URL {
  if (workerFound !== undefined) return workerFound;
  const beside = besideThis()?.worker;
  if (beside !== undefined && look(fileURLToPath(beside))) {
    workerFound = beside;
    return beside;
  }
  const folders = ownFolders().flatMap((folder) => [folder, join(folder, '..')]);
  const installed = packageFolder();
  if (installed !== undefined) folders.push(join(installed, 'dist'));
  for (const folder of folders) {
    for (const extension of ['js', 'mjs', 'cjs']) {
      const path = join(folder, `${WORKER}.${extension}`);
      if (!look(path)) continue;
      workerFound = pathToFileURL(path);
      return workerFound;
    }
  }
  throw new UnavailableError(
    `allstop: ${WORKER}.js is missing, in ${folders.join(', ')}. What to do: ` +
      `add 'allstop/worker' to the bundler's entry points, by the name '${WORKER}'`,
  );
}
