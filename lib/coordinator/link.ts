/** One link: what the program gets, and disposes of. What links do: links.ts. */

import { showAs } from '../base/inspect.ts';
import type { Attachment } from './attachment.ts';

/** Undoes a link whose coordinator ends. */
export let endLink: (link: Disposable) => void;

/** Undoes a link. @param isAsked the program disposes of the link; else its coordinator ends */
type Undo = (isAsked: boolean) => void;

/** What the methods that make links return. */
export class Link implements Disposable {
  readonly #description: string;
  #undo: Undo | undefined;

  static {
    endLink = (link) => (link as Link).#undoOnce(false);
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

/** A link that ends with its coordinator. */
export function keptLink({ links }: Attachment, description: string, undo: Undo): Link {
  const link = new Link(description, (isAsked) => {
    links.delete(link);
    undo(isAsked);
  });
  links.add(link);
  return link;
}

/** A kept link that `explain()` lists until it is undone. */
export function describedLink(attachment: Attachment, description: string, undo: Undo): Link {
  const id = attachment.native.addLink(description);
  return keptLink(attachment, description, (isAsked) => {
    attachment.native.removeLink(id);
    undo(isAsked);
  });
}
