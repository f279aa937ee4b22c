/** What has happened in a simulation, in order: facts for judges, and lines for people. */

let events = [];
let clock;

export let time;

export function begin(virtualTime) {
  time = virtualTime;
  clock = virtualTime;
  events = [];
}

/** Notes that `what` happened where the caller runs. */
export function tell(what, facts = {}) {
  events.push({ at: clock.ms, place: clock.place.name, what, ...facts });
}

export const history = () => events;

/** The history as text, a line for each event. */
export function shown(list = events) {
  return list.map(({ at, place, what, ...facts }) => {
    const words = Object.entries(facts).map(([key, value]) => `${key}=${textOf(value)}`);
    return `${at.toFixed(2).padStart(10)}  ${place.padEnd(22)} ${what}  ${words.join(' ')}`.trimEnd();
  });
}

const textOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
