// The search finds sections of pages and messages of errors, too, and takes any text: typedoc's own
// takes "a" of "a: b" for the name of a field, and finds pages with any one of the words.
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { deflateSync, inflateSync } from 'node:zlib';

/** A placeholder in a message of docs/errors.md: NAME, N. */
const PLACEHOLDER = /\W?\b(?:[A-Z]{4,}|N)\b\W?/;

/** The first cell of a row of a table: the text of a message. */
const MESSAGE = /^\| `([^`]{12,})`/gm;

export class Sections {
  #rows = [];

  /** @param {import('typedoc').PageEvent} page a page of docs/ */
  add({ model, url, pageHeadings }) {
    if (!model.isDocument?.()) return;
    const { kind, name: parent } = model;
    for (const { text, link, level } of pageHeadings) {
      if (level > 1) this.#rows.push({ kind, parent, name: text, url: url + link, section: true });
    }
    if (basename(url) !== 'errors.html') return;
    const text = model.content.map((part) => part.text).join('');
    for (const [, name] of text.matchAll(MESSAGE)) {
      const [longest] = name.split(PLACEHOLDER).toSorted((a, b) => b.length - a.length);
      const fragment = encodeURIComponent(longest.trim()).replaceAll('-', '%2D');
      this.#rows.push({ kind, parent, name, url: `${url}#:~:text=${fragment}`, section: true });
    }
  }

  /** Adds the sections to the data of the search. @param {string} assets the folder of both */
  write(assets) {
    replaceSearch(join(assets, 'main.js'));
    const file = join(assets, 'search.js');
    const [, packed] = /"(.+)"/.exec(readFileSync(file, 'utf8'));
    const data = JSON.parse(inflateSync(Buffer.from(packed, 'base64')));
    data.rows.push(...this.#rows);
    const text = deflateSync(JSON.stringify(data)).toString('base64');
    writeFileSync(file, `window.searchData = "${text}";`);
  }
}

/** Where typedoc's script makes a query of the text, and asks the index. */
const QUERY =
  /let (\w+)=(\w+)\.split\(" "\)\.map\(\w+=>\w+\.length\?`\*\$\{\w+\}\*`:""\)\.join\(" "\);(\w+)=(\w+)\.index\.search\(\1\)/;

function replaceSearch(file) {
  const script = readFileSync(file, 'utf8');
  if (!QUERY.test(script)) throw new Error(`${file}: the search of this typedoc is another`);
  const ours = script.replace(
    QUERY,
    (_all, _words, text, results, data) => `${results}=(${String(search)})(${text},${data})`,
  );
  writeFileSync(file, ours);
}

/** Runs in the browser: the results for all words, those with the most of the words first. */
function search(text, { index, data: { rows } }) {
  const wordsOf = (string) => [...new Set(string.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [])];
  // A letter alone ("ctrl-c") is in every page.
  const words = wordsOf(text).filter((word, _, all) => word.length > 1 || all.length === 1);
  const results = new Map();
  for (const word of words) {
    for (const { ref, score } of index.search(`*${word}*`)) {
      const result = results.get(ref) ?? { ref, score: 0, words: 0 };
      result.score += score;
      result.words += 1;
      results.set(ref, result);
    }
  }
  for (const [number, row] of rows.entries()) {
    if (!row.section) continue;
    const own = wordsOf(row.name.replaceAll(/\b(?:[A-Z]{4,}|N)\b/g, ''));
    const found = own.filter((word) => words.some((each) => word.startsWith(each))).length;
    if (found === 0) continue;
    const share = found / own.length;
    const isMeant = share > 0.6 || (found > 2 && found === words.length);
    const score = isMeant ? 50 * found ** 3 * share : share;
    results.set(`${number}`, { ref: `${number}`, score, words: found });
  }
  for (const result of results.values()) result.score *= 10 ** (result.words - 1);
  return [...results.values()];
}
