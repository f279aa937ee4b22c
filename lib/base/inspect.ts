/** What util.inspect and console.log say of an object: `Coordinator 'app' { running, 3 threads }`. */

import { type InspectOptionsStylized, inspect } from 'node:util';
import { define } from './thrown-value.ts';

/** `facts`: what a person wants to know, each in a few words. */
export type Shown = { name?: string | undefined; facts: readonly string[] };

const LONGEST_FACT = 100;

/**
 * From now on util.inspect shows the objects of a class in one line. `prototype`: of the class. A
 * derived class is shown by its own name. `describe` must not change anything, nor give an error
 * to the program; it may throw for an object that only inherits from the class, or a Proxy, which
 * Node then shows as it shows any object.
 */
export function showAs<T extends object>(prototype: T, describe: (object: T) => Shown): void {
  function show(this: T, depth: number, options: InspectOptionsStylized): unknown {
    let shown: Shown;
    let type: string;
    try {
      shown = describe(this); // throws for a Proxy, before one of its traps is called
      type = nameOfClass(this);
    } catch {
      return this;
    }
    if (depth < 0) return options.stylize(`[${type}]`, 'special');
    // A `breakLength` breaks long strings into several lines.
    const inOneLine = { ...options, breakLength: Number.POSITIVE_INFINITY };
    const name = shown.name === undefined ? '' : ` ${inspect(shown.name, inOneLine)}`;
    const facts = shown.facts.map((fact) => inOne(fact)).join(', ');
    return `${type}${name} ${facts === '' ? '{}' : `{ ${facts} }`}`;
  }
  define(prototype, inspect.custom, show, false);
}

/** From now on util.inspect and console.log show `object` as its `toString()`. @returns `object` */
export function shownAsText<T extends { toString(): string }>(object: T): T {
  define(object, inspect.custom, () => object.toString(), false);
  return object;
}

/** From now on util.inspect and console.log show `object` whole, however deep. @returns `object` */
export function shownWhole<T extends object>(object: T): T {
  const show = (_depth: number, options: InspectOptionsStylized): string =>
    inspect({ ...object }, { ...options, depth: null });
  define(object, inspect.custom, show, false);
  return object;
}

function inOne(fact: string): string {
  const escaped = fact.replaceAll(
    /[^ -~\xa0-\u2027\u202a-\uffff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return escaped.length > LONGEST_FACT ? `${escaped.slice(0, LONGEST_FACT - 1)}…` : escaped;
}

/** The name of the class that `object` is an instance of, without calling a getter. */
function nameOfClass(object: object): string {
  for (let each: unknown = object; each !== null; each = Object.getPrototypeOf(each)) {
    const made: unknown = Object.getOwnPropertyDescriptor(each, 'constructor')?.value;
    if (typeof made !== 'function') continue;
    const name: unknown = Object.getOwnPropertyDescriptor(made, 'name')?.value;
    if (typeof name === 'string' && name !== '') return name;
  }
  return 'Object';
}
