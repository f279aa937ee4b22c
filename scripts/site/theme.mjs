// What typedoc's theme lacks: a main landmark, names of landmarks and of the search, descriptions,
// an order of headings, pictures of the theme that is chosen.
import { breakable } from './markdown.mjs';

const escape = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');

const textOf = (html) =>
  html
    .replaceAll(/<[^>]+>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .replaceAll(/\s+/g, ' ');

/** The page's own description in place of the site's: its first paragraph. */
function described(html) {
  const content = html.slice(html.indexOf('<div class="col-content">'));
  const first = /<p>(.+?)<\/p>/s.exec(content)?.[1];
  if (first === undefined) return html;
  const text = escape(textOf(first).slice(0, 300));
  return html.replace(/(<meta name="description" content=")[^"]*/, (_, start) => `${start}${text}`);
}

/** typedoc's headings are h4 and h5 below an h1, also without an index, and h3 in the menus. */
function withLevels(html) {
  return html
    .replaceAll('<h5 class="tsd-index-heading', '<h5 aria-level="2" class="tsd-index-heading')
    .replace(/^.*?(?=<h2|<section class="tsd-panel-group|<\/html>)/s, (top) =>
      top
        .replaceAll(/<h4(?=[ >])/g, '<h4 aria-level="2"')
        .replaceAll(/<h5(?! aria-level)(?=[ >])/g, '<h5 aria-level="3"'),
    )
    .replaceAll(
      /<div class="(?:page|site)-menu">.*?(?=<div class="site-menu">|<footer)/gs,
      (menu) => menu.replaceAll(/<h3(?=[ >])/g, '<h3 aria-level="2"'),
    );
}

const PICTURE =
  /<picture><source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)"><img alt="([^"]*)" src="([^"]+)"><\/picture>/g;

/** @param {string} html a page */
export function improved(html) {
  return withLevels(described(html))
    .replace('<div class="col-content">', '<div class="col-content" role="main">')
    .replace(
      '<header class="tsd-page-toolbar">',
      '$&<a class="skip" href="#tsd-nav-container">To the menu</a>',
    )
    .replace('</head>', '<link rel="icon" href="data:,"></head>')
    .replace(/(<h1[^>]*>)(.*?)(<\/h1>)/s, (_, start, title, end) => start + breakable(title) + end)
    .replace(
      '<div class="page-menu">',
      '<div class="page-menu" role="navigation" aria-label="This page">',
    )
    .replace('<nav id="tsd-sidebar-links"', '$& aria-label="Elsewhere"')
    .replace('<nav class="tsd-navigation"', '$& aria-label="All pages"')
    .replace('<input role="combobox"', '$& aria-label="Search the docs"')
    .replace('<ul role="listbox"', '$& aria-label="Results"')
    .replaceAll(
      PICTURE,
      '<span class="picture" role="region" aria-label="Picture: $2" tabindex="0"><img class="when-light" alt="$2" src="$3"><img class="when-dark" alt="$2" src="$1"></span>',
    );
}
