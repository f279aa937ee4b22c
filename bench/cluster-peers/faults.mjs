/** The functions of pool-faults.mjs, for the cluster and its peers. Each takes one argument. */
import { appendFileSync, writeFileSync } from 'node:fs';

export const succeed = (value) => value;
export const fail = (value) => {
  throw new RangeError(`err of ${value}`);
};
export const exit = () => process.exit(1);

/** Notes in a file that it has run to its end. `kills`: it ends its worker then, the first time. */
export function note({ value, file, kills }) {
  appendFileSync(file, `${value}\n`);
  if (kills && firstTime(`${file}.${value}`)) process.exit(1);
  return value;
}

function firstTime(path) {
  try {
    writeFileSync(path, '', { flag: 'wx' });
    return true;
  } catch {
    return false;
  }
}
