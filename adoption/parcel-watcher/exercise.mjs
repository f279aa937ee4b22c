// For `allstop check-addon`: a worker subscribes to a folder; files change in it after its end.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

// The same folder in every thread of the process: `afterwards` runs in another worker.
const folder = join(tmpdir(), `allstop-watched-${process.pid}`);

export default async (addon) => {
  mkdirSync(folder, { recursive: true });
  await new Promise((resolve) => {
    addon
      .subscribe(folder, () => resolve(), {})
      .then(() => writeFileSync(join(folder, 'first'), 'x'));
  });
};

export async function afterwards() {
  mkdirSync(folder, { recursive: true });
  for (let i = 0; i < 4; i++) {
    writeFileSync(join(mkdtempSync(join(folder, 'later-')), 'file'), 'x');
    await sleep(60); // the addon collects changes for 50 ms
  }
}
