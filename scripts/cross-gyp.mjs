#!/usr/bin/env node
// What prebuildify runs in place of node-gyp for a target that is not this machine.
// ALLSTOP_TARGET names the target.
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { crossBuild } from './cross-build.mjs';
import { targets } from './targets.mjs';

const root = resolve(import.meta.dirname, '..');
const target = targets.find(({ name }) => name === process.env.ALLSTOP_TARGET);
const addon = crossBuild({
  target,
  source: root,
  build: join(root, 'build-prebuilds', target.name),
  cmakeTarget: 'allstop',
  settings: { ALLSTOP_ADDON: 'ON' },
});
const output = join(root, 'build/Release');
rmSync(output, { recursive: true, force: true });
mkdirSync(output, { recursive: true });
copyFileSync(addon, join(output, 'allstop.node'));
