// What the plot shows: losses, deaths and living workers by seconds since the first start. A program
// that was killed and started again goes on with the losses of its checkpoint, and with the deaths
// that its supervisor has noted.

/** @typedef {import('./plot.mjs').Point} Point */
/** @typedef {'worker' | 'ps' | 'coordinator' | 'server'} Mortal */
/** `at`: in milliseconds, as Date.now(). @typedef {{ of: Mortal, at: number }} Death */
/** A restart of the program, and what was lost since the save that it goes on from.
 * @typedef {{ at: number, lostMs: number, lostSteps: number }} Restart */
/** @typedef {{ began: number, deaths: Death[], restarts: Restart[] }} Known */
/** @typedef {{ savedAt: number, applied: number, lossOfWindow: number, points: Point[],
 *   alive: { seconds: number, alive: number }[] }} Saved */

/** @param {Known} known what has happened so far
 * @param {(news: object) => void} tell tells the supervisor */
export function createHistory({ began, deaths, restarts }, tell) {
  return {
    /** How many steps were applied. */
    applied: 0,
    lossOfWindow: 0,
    /** When the save that the program goes on from was made. */
    savedAt: began,
    /** @type {Point[]} */
    points: [],
    deaths: [...deaths],
    restarts: [...restarts],
    /** @type {{ seconds: number, alive: number }[]} */
    alive: [],

    seconds(at = Date.now()) {
      return (at - began) / 1000;
    },

    /** The program has killed somebody. @param {Mortal} of */
    killed(of) {
      const death = { of, at: Date.now() };
      this.deaths.push(death);
      tell({ death });
    },

    /** @param {Mortal} of */
    deathsOf(of) {
      return this.deaths.filter((death) => death.of === of).length;
    },

    /** @param {Iterable<{ job: string, state: string }>} workers */
    count(workers) {
      const living = [...workers].filter(
        ({ job, state }) => job === 'worker' && (state === 'idle' || state === 'busy'),
      );
      this.markAlive(Date.now(), living.length);
    },

    markAlive(at, alive) {
      if (this.alive.at(-1)?.alive !== alive) this.alive.push({ seconds: this.seconds(at), alive });
    },

    /** @returns {Saved} */
    save() {
      const { applied, lossOfWindow, points, alive } = this;
      return { savedAt: Date.now(), applied, lossOfWindow, points, alive };
    },

    /** @param {Saved} saved */
    restore(saved) {
      Object.assign(this, saved);
    },

    /** The program goes on, from a save or, without one, from the beginning.
     * @param {{ at: number, step: number }} end when the program before it was lost, and its step */
    goOn({ at, step }) {
      const restart = {
        at: Date.now(),
        lostMs: Math.max(0, at - this.savedAt),
        lostSteps: Math.max(0, step - this.applied),
      };
      this.restarts.push(restart);
      tell({ restart });
    },
  };
}
