// A plugin of typedoc: the menu shows the title of each page of docs/, in the groups and the order of
// docs/index.md. A page keeps the address that its file's name gives it.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Application, Converter, KindRouter, PageEvent, RendererEvent } from 'typedoc';
import { markdownOf } from './markdown.mjs';
import { Sections } from './search.mjs';
import { improved } from './theme.mjs';

const docs = join(import.meta.dirname, '../../docs');

/** The pages that docs/index.md lists: the name of the file, and the heading above its line. */
function listed() {
  const index = readFileSync(join(docs, 'index.md'), 'utf8');
  const pages = new Map([['index', 'Overview']]);
  for (const section of index.split(/^(?=## )/m).slice(1)) {
    const group = /^## (.+)$/m.exec(section)[1];
    // Pages that are not in the package have the address of the repository.
    for (const [, name] of section.matchAll(/\]\((?:https:\S+\/docs\/)?([a-z-]+)\.md\)/g)) {
      if (!pages.has(name)) pages.set(name, group);
    }
  }
  return pages;
}

const fileNames = new WeakMap(); // of the documents

class PageRouter extends KindRouter {
  getIdealBaseName(reflection) {
    const name = fileNames.get(reflection);
    return name === undefined ? super.getIdealBaseName(reflection) : `documents/${name}`;
  }
}

/** @param {Application} app */
export function load(app) {
  const pages = listed();
  const sections = new Sections();
  app.renderer.defineRouter('pages', PageRouter);
  app.renderer.on(PageEvent.END, (page) => {
    if (page.filename.endsWith('.html')) page.contents = improved(page.contents);
    sections.add(page);
  });
  const last = -1_000; // typedoc has written its assets
  const addSections = ({ outputDirectory }) => sections.write(join(outputDirectory, 'assets'));
  app.renderer.on(RendererEvent.END, addSections, last);
  app.on(Application.EVENT_BOOTSTRAP_END, () => {
    for (const file of readdirSync(docs).filter((name) => name.endsWith('.md'))) {
      if (!pages.has(basename(file, '.md'))) app.logger.error(`docs/index.md lacks ${file}`);
    }
    const order = [...pages.keys()].map((name) => join(docs, `${name}.md`));
    app.options.setValue('projectDocuments', order);
    app.options.setValue('markdownItLoader', markdownOf(docs, pages));
    app.options.setValue('groupOrder', [...new Set(pages.values()), '*']);
  });
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_, document) => {
    const name = basename(document.name);
    const text = readFileSync(join(docs, `${name}.md`), 'utf8');
    fileNames.set(document, name);
    document.name = /^# (.+)$/m.exec(text)[1];
    document.frontmatter.group = pages.get(name);
  });
}
