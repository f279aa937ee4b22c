// check-tag.mjs TAG: fails unless TAG is v and the version in package.json, and CHANGELOG.md has that
// version with a date.
import { readFileSync } from 'node:fs';

const read = (file) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
const { version } = JSON.parse(read('package.json'));
const [tag] = process.argv.slice(2);
if (tag !== `v${version}`) {
  console.error(
    `The tag is ${tag}, but package.json has version ${version}. What to do: npm version`,
  );
  process.exitCode = 1;
}
const heading = read('CHANGELOG.md')
  .split('\n')
  .find((line) => line.startsWith(`## ${version}`));
if (heading === undefined || /unreleased/.test(heading)) {
  console.error(`CHANGELOG.md has no dated heading '## ${version}'. What to do: add the date`);
  process.exitCode = 1;
}
