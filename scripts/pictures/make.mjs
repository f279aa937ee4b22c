// Makes the pictures of the documents, each from a run:
//   docs/demo.svg, docs/hang.svg  what a terminal shows while a program runs, is sent
//                                 SIGINT and ends
//   docs/timeline.png             the page of `allstop timeline`, if there is a chromium
//
//   node scripts/pictures/make.mjs
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const COLUMNS = 92;
const CHARACTER = 8.4; // of a monospaced font of 14 pixels
const LINE = 19;
const MARGIN = 16;
const root = resolve(import.meta.dirname, '../..');

const pictures = [
  { file: 'demo', shown: 'npx allstop demo', args: ['dist/cli/main.js', 'demo'], at: /still here/ },
  { file: 'hang', shown: 'node server.mjs', args: ['scripts/pictures/hang.mjs'], at: /listening/ },
];

for (const { file, shown, args, at } of pictures) {
  const { text, exitCode } = await record(args, at);
  const output = text.trimEnd().split('\n').flatMap(folded);
  const lines = [`$ ${shown}`, ...output, '$ echo $?', `${exitCode}`];
  writeFileSync(join(root, `docs/${file}.svg`), drawn(lines, `A terminal: ${shown}, then Ctrl-C`));
  console.log(lines.join('\n'));
}

const folder = mkdtempSync(join(tmpdir(), 'pictures-'));
const [data, page] = ['timeline.json', 'timeline.html'].map((name) => join(folder, name));
for (const args of [
  ['scripts/pictures/timeline.mjs', data],
  ['dist/cli/main.js', 'timeline', data, '-o', page],
]) {
  spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
}
const target = `--screenshot=${join(root, 'docs/timeline.png')}`;
const flags = ['--headless', '--no-sandbox', '--hide-scrollbars', '--window-size=1200,760'];
const { error } = spawnSync('chromium', [...flags, target, `file://${page}`], { stdio: 'ignore' });
// Of 64 colours it has a third of the bytes, and looks the same. It is in the tarball.
const fewer = [
  '--force',
  '--strip',
  '--speed=1',
  '--nofs',
  '--ext=.png',
  '64',
  'docs/timeline.png',
];
spawnSync('pngquant', fewer, { cwd: root, stdio: 'ignore' });
console.log(
  error === undefined ? 'docs/timeline.png' : `docs/timeline.png stays: ${error.message}`,
);
rmSync(folder, { recursive: true });

/** Runs a program of this repository, and presses Ctrl-C a while after it has printed `at`. */
async function record(args, at) {
  const terminal = join(root, 'test/support/terminal.py');
  const command = [terminal, `${COLUMNS}`, '-1', process.execPath, ...args];
  const child = spawn('python3', command, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  let pressed = false;
  child.stdout.setEncoding('utf8').on('data', async (chunk) => {
    text += chunk.replaceAll('\r', '');
    if (pressed || !at.test(text)) return;
    pressed = true;
    await sleep(1_500);
    text += '^C\n';
    process.kill(childOf(child.pid), 'SIGINT');
  });
  const [exitCode] = await once(child, 'close');
  return { text: text.replaceAll(`file://${root}`, 'file:///home/me/shop'), exitCode };
}

/** The first child of a process, by /proc. */
function childOf(pid) {
  const isChild = (name) => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid;
    } catch {
      return false; // it has ended
    }
  };
  return Number(readdirSync('/proc').find((name) => /^\d+$/.test(name) && isChild(name)));
}

/** A line as a terminal shows it that is too narrow. */
function folded(line) {
  return line.match(new RegExp(`.{1,${COLUMNS}}|^$`, 'g'));
}

function drawn(lines, title) {
  const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const width = Math.ceil(COLUMNS * CHARACTER + 2 * MARGIN);
  const height = lines.length * LINE + 2 * MARGIN;
  const rows = lines.map((line, index) => {
    const y = MARGIN + LINE * index + 14;
    const kind = /^(\$ |\^C)/.test(line) ? ' class="typed"' : '';
    return `<text x="${MARGIN}" y="${y}"${kind}>${escape(line)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" role="img" aria-label="${escape(title)}">
<title>${escape(title)}</title>
<style>
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d8dee6; white-space: pre; }
.typed { fill: #8fd19e; font-weight: bold; }
</style>
<rect width="${width}" height="${height}" rx="8" fill="#16191d"/>
${rows.join('\n')}
</svg>
`;
}
