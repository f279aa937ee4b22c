/** The launchers under which people run programs, and a program that a test starts by one of them. */

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const shell = join(root, 'test/support/shell.py');
const program = join(root, 'test/lifecycle/scripts/pressed.mjs');
const late = join(root, 'test/lifecycle/scripts/launches-late.mjs');

/** Those that are not part of Node, and are fetched when they are first needed. */
const PACKAGES = { nodemon: '3.1.14', pnpm: '12.21.0', tsx: '4.23.15' };
const folder = join(root, 'build-launchers');

/** Once for a checkout. Two processes may call it at once: the first one's folder counts. */
function fetchLaunchers(): void {
  const isDone = (): boolean =>
    Object.keys(PACKAGES).every((name) => existsSync(join(folder, 'node_modules', name)));
  if (isDone()) return;
  const fresh = mkdtempSync(`${folder}-`);
  writeFileSync(join(fresh, 'package.json'), '{ "private": true }\n');
  const flags = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  const packages = Object.entries(PACKAGES).map(([name, version]) => `${name}@${version}`);
  execFileSync('npm', ['install', ...flags, ...packages], { cwd: fresh });
  // Puts the program for this platform in its place, as its install script does.
  const pnpm = join(fresh, 'node_modules/pnpm');
  execFileSync(process.execPath, ['install.js'], { cwd: pnpm, stdio: 'pipe' });
  if (isDone()) {
    rmSync(fresh, { recursive: true });
  } else {
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
  }
}

const busybox = spawnSync('which', ['busybox'], { encoding: 'utf8' }).stdout.trim();
/** Busybox does what its own name says. In the project, and not where npm looks for programs. */
const BUSYBOX_SHELL = 'busybox/sh';

const npm = (sh: string): string[] => ['npm', 'start', '--silent', `--script-shell=${sh}`];

/** By its name, what a user types. */
export const LAUNCHERS: Record<string, readonly string[]> = {
  node: ['node', program],
  'npm start (dash)': npm('dash'),
  'npm start (bash)': npm('bash'),
  'npm start (busybox)': npm(`./${BUSYBOX_SHELL}`),
  npx: ['npx', 'pressed'],
  'pnpm start': ['pnpm', '--silent', 'start'],
  nodemon: ['nodemon', '--quiet', program],
  'tsx watch': ['tsx', 'watch', program],
  'node --watch': ['node', '--watch', program],
  'a slow launcher': ['node', late, program],
};

/** Whether the machine has what the launcher needs. */
export const isThere = (name: string): boolean => busybox !== '' || !name.includes('busybox');

/** A folder in which the launchers find the program. `fetch`: not only those that come with Node. */
export function makeProject({ fetch = false } = {}): string {
  if (fetch) fetchLaunchers();
  const project = mkdtempSync(join(tmpdir(), 'launched-'));
  const scripts = { start: `node ${program}` };
  writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, scripts }));
  mkdirSync(join(project, 'node_modules/.bin'), { recursive: true });
  symlinkSync(program, join(project, 'node_modules/.bin/pressed'));
  mkdirSync(join(project, 'busybox'));
  if (busybox !== '') symlinkSync(busybox, join(project, BUSYBOX_SHELL));
  return project;
}

/** A program that runs in a terminal of its own. */
export class Launched {
  readonly #terminal: ChildProcess;
  readonly #server: Server;
  readonly #socketPath: string;
  readonly #sockets = new Set<Socket>();
  readonly #listeners = new Set<() => void>();
  #told = '';
  #shown = '';
  #isOver = false;

  constructor(project: string, launcher: readonly string[], hookMs: number) {
    this.#socketPath = join(mkdtempSync(join(tmpdir(), 'pressed-')), 'socket');
    this.#server = createServer((socket) => this.#listen(socket)).listen(this.#socketPath);
    const { NODE_OPTIONS: _, ...env } = process.env;
    const path = [join(folder, 'node_modules/.bin'), env['PATH']].join(delimiter);
    this.#terminal = spawn('python3', [shell, ...launcher], {
      cwd: project,
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...env, PATH: path, SOCKET: this.#socketPath, HOOK_MS: `${hookMs}` },
    });
    this.#terminal.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#shown += text;
      this.#tell();
    });
  }

  /** What the terminal shows. */
  get shown(): string {
    return this.#shown;
  }

  /** What the program has told: 'ready', 'closing', 'closed'. */
  get told(): string[] {
    return this.#told.split('\n').slice(0, -1);
  }

  async tells(word: string): Promise<void> {
    const hasFailed = (): boolean => this.told.length === 0 && this.#shown.includes('<job ended');
    await this.#until(() => this.told.includes(word) || this.#isOver || hasFailed());
    if (!this.told.includes(word)) throw new Error(`It ended without '${word}': ${this.#shown}`);
  }

  /** Resolves when the process of the program has ended; to false if it has not after `ms`. */
  async ends(ms: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    await Promise.race([this.#until(() => this.#isOver), tooLate]);
    clearTimeout(timer);
    return this.#isOver;
  }

  pressCtrlC(): void {
    this.#terminal.stdin?.write('\u0003');
  }

  async signalLauncher(signal: NodeJS.Signals): Promise<void> {
    await this.#until(() => /<job \d+>/.test(this.#shown));
    process.kill(Number(/<job (\d+)>/.exec(this.#shown)?.[1]), signal);
  }

  close(): void {
    this.#terminal.stdin?.end();
    for (const socket of this.#sockets) socket.destroy(); // the program ends, if it has not
    this.#server.close();
    rmSync(join(this.#socketPath, '..'), { recursive: true });
  }

  #listen(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setEncoding('utf8').on('data', (text: string) => {
      this.#told += text;
      this.#tell();
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#isOver = true;
      this.#tell();
    });
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }

  async #until(predicate: () => boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (!predicate()) return;
        this.#listeners.delete(look);
        resolve();
      };
      this.#listeners.add(look);
      look();
    });
  }
}
