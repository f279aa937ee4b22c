/** One link: what the program gets, and disposes of. What links do: links.ts. */

import { showAs } from '../base/inspect.ts';

/** Undoes a link whose coordinator ends. */
export let endLink: (link: Link) => void;

/** Undoes a link. @param isAsked the program disposes of the link; else its coordinator ends */
export type Undo = (isAsked: boolean) => void;

/** What the methods that make links return. */
export class Link implements Disposable {
  readonly #description: string;
  #undo: Undo | undefined;

  static {
    endLink = (link) => link.#undoOnce(false);
    showAs(Link.prototype, (link) => ({
      facts: link.#undo === undefined ? [link.#description, 'ended'] : [link.#description],
    }));
  }

  /** Calls `undo` once. Without it, the link has ended already. */
  constructor(description: string, undo?: Undo) {
    this.#description = description;
    this.#undo = undo;
  }

  [Symbol.dispose](): void {
    this.#undoOnce(true);
  }

  #undoOnce(isAsked: boolean): void {
    const undo = this.#undo;
    this.#undo = undefined;
    undo?.(isAsked);
  }
}
