// What the plot shows: losses, deaths and living workers by seconds since the first start. A program
// that was killed and started again goes on with the history of its checkpoint.

/** @typedef {import('./plot.mjs').Point} Point */
/** @typedef {{ applied: number, lossOfWindow: number, points: Point[], kills: number[],
 *   alive: { seconds: number, alive: number }[] }} Saved */

/** @param {{ began: number, restarts: number[] }} supervision in milliseconds, as Date.now() */
export function createHistory({ began, restarts }) {
  const seconds = (at = Date.now()) => (at - began) / 1000;
  return {
    /** How many steps were applied. */
    applied: 0,
    lossOfWindow: 0,
    /** @type {Point[]} */
    points: [],
    /** @type {number[]} */
    kills: [],
    /** @type {{ seconds: number, alive: number }[]} */
    alive: [],
    restarts: restarts.map(seconds),
    seconds,

    /** @param {Iterable<{ state: string }>} workers */
    count(workers) {
      const alive = [...workers].filter(({ state }) => state === 'idle' || state === 'busy').length;
      if (this.alive.at(-1)?.alive !== alive) this.alive.push({ seconds: seconds(), alive });
    },

    /** @returns {Saved} */
    save() {
      const { applied, lossOfWindow, points, kills, alive } = this;
      return { applied, lossOfWindow, points, kills, alive };
    },

    /** @param {Saved} saved */
    restore(saved) {
      Object.assign(this, saved);
    },

    /** With the program, its workers have died. */
    markRestarts() {
      for (const at of this.restarts) this.alive.push({ seconds: at, alive: 0 });
      this.alive.sort((one, other) => one.seconds - other.seconds);
    },
  };
}
