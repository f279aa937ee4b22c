/** What of the package is still held: by this, what has settled can be told to be forgotten. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

// The simulation replaces this one: there all that was ever held weakly is kept.
const RealWeakRef = WeakRef;
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

/** [what, the place that made it] */
let made = [];

/** From now on every object of the class is known that enters a state of its life. */
export function remember({ prototype }, time) {
  const known = new WeakSet();
  const { become } = prototype;
  prototype.become = function (...args) {
    if (!known.has(this)) {
      known.add(this);
      made.push([new RealWeakRef(this), time.place]);
    }
    return become.apply(this, args);
  };
}

/** @returns by the name of each process that lives: how many calls it holds, and how many values */
export function remembered() {
  // The first may only end a collection that was under way.
  collect();
  collect();
  made = made.filter(([ref, place]) => !place.isDead && ref.deref() !== undefined);
  const held = {};
  for (const [ref, place] of made) {
    const name = place.name.split('/')[0];
    held[name] ??= { calls: 0, values: 0 };
    held[name].calls += 1;
    if ('outcome' in ref.deref().life) held[name].values += 1;
  }
  return held;
}
