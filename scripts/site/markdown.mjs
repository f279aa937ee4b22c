// How the pages of docs/ are read, where typedoc's own reading loses something.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Names in HTML may be broken after "_" and between "Cancelled" and "Error", outside of tags. */
export const breakable = (html) =>
  html.replaceAll(
    /(<[^>]*>|&\w+;)|([a-z])(?=[A-Z])|_(?=[A-Z])/g,
    (text, skipped) => skipped ?? `${text}<wbr>`,
  );

/**
 * @param {string} docs the folder of the pages
 * @param {ReadonlyMap<string, string>} pages the names of the pages that docs/index.md lists
 * @returns typedoc's option `markdownItLoader`
 */
export function markdownOf(docs, pages) {
  const titleOf = (name) => /^# (.+)$/m.exec(readFileSync(join(docs, `${name}.md`), 'utf8'))[1];

  /** Changes the words of a heading, or of a link. */
  function reword(tokens) {
    for (const [i, { children }] of tokens.entries()) {
      const isHeading = tokens[i - 1]?.type === 'heading_open';
      for (const [j, token] of (children ?? []).entries()) {
        // typedoc makes the title and the id of a heading from its texts, and forgets the code in it.
        if (isHeading && token.type === 'code_inline') token.type = 'text';
        // A link that shows the name of a file shows the title of that page.
        const name = /^(?:docs\/)?([a-z-]+)\.md$/.exec(token.content)?.[1];
        const isLink = token.type === 'text' && children[j - 1]?.type === 'link_open';
        if (isLink && pages.has(name)) token.content = titleOf(name);
      }
    }
  }

  return (parser) => {
    // The first line of a language makes its grammar, too. On a busy machine that takes longer than
    // the half second after which a line is left as it is, and the next one is taken for its rest.
    const { highlight } = parser.options;
    const met = new Set();
    const highlightWell = (code, language) => {
      if (!met.has(language)) highlight(code, language);
      met.add(language);
      return highlight(code, language);
    };
    parser.set({ highlight: highlightWell });
    parser.linkify.set({ fuzzyLink: false }); // platforms.md is a file, not an address
    parser.core.ruler.push('site', ({ tokens }) => reword(tokens));
    let inTable = false;
    const { rules } = parser.renderer;
    rules.table_open = (tokens, at) => {
      inTable = true;
      const number = tokens.slice(0, at + 1).filter(({ type }) => type === 'table_open').length;
      // The keyboard can scroll a region that takes the focus.
      return `<div class="table" role="region" aria-label="Table ${number}" tabindex="0"><table>\n`;
    };
    rules.table_close = () => {
      inTable = false;
      return '</table></div>\n';
    };
    const code = rules.code_inline;
    rules.code_inline = (...args) => (inTable ? breakable(code(...args)) : code(...args));
  };
}
