// release-notes.mjs TAG: prints what CHANGELOG.md says of the version, without its heading.
import { readFileSync } from 'node:fs';

const [tag = ''] = process.argv.slice(2);
const changelog = readFileSync(new URL('../CHANGELOG.md', import.meta.url), 'utf8');
const sections = changelog.split(/^## /m).slice(1);
const section = sections.find((text) => text.startsWith(`${tag.replace(/^v/, '')} `));
if (section === undefined) {
  console.error(`CHANGELOG.md has no heading for ${tag}. What to do: pass a tag such as v0.2.0`);
  process.exitCode = 1;
} else {
  console.log(section.slice(section.indexOf('\n')).trim());
}
